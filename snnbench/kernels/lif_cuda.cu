/* The fused LIF neuron on an NVIDIA GPU: all time steps in one pass over memory, forward and backward.

   Arrays are [T, M] with M = batch * neurons columns, which are independent of each other. A thread takes VECTOR
   neighbouring columns through all steps, their state in registers; threads do not talk to each other. While it computes
   ROWS steps the next ROWS are on their way from memory: with one load in flight a step would take as long as a load.
   What is kept for the backward pass is u - threshold, whose sign bit is the spike, in any rounding.

   Bytes a neuron-step in float32: forward 8 + k (current in, spike out, k = 4 or 2 kept), backward 8 + k (cotangent and
   kept in, gradient out); 4 + 2 with everything in 16 bits. Kept may overwrite the current, the gradient may overwrite
   what was kept: nothing here is __restrict__, and a row is written after it was read.
   Speed on an H100: benchmarks/README.md.

   Compiled once for each kind of neuron, number format and width, with these macros:
     FORWARD or BACKWARD   the kernel that is wanted, as the name it shall have
     STORED, KEPT          float, bfloat16 or float16: currents, spikes, cotangents and gradients; what is kept
     VECTOR, ROWS, THREADS columns of a thread: 1, 2 or 4; steps of a batch; threads of a block
     RESETS_TO_ZERO, DETACHED, HAS_BIAS, HAS_SYNAPSE, KEEPS, SUMS_BIAS, SUMS_BETA, SUMS_THRESHOLD   0 or 1
     SURROGATE             an expression in distance, slope and threshold
   State is float. The forward pass rounds every product and every sum on its own, so that spikes are those of the same
   lines in any framework; the backward pass may contract them. */

typedef long long offset;
typedef float real;
#define INLINE __device__ __forceinline__

struct bfloat16 { unsigned short bits; };
struct float16 { unsigned short bits; };

INLINE float widen(float value) { return value; }
INLINE float widen(bfloat16 value) { return __uint_as_float((unsigned int)value.bits << 16); }
INLINE void narrow(float value, float &stored) { stored = value; }
#ifdef __CUDACC__
INLINE float widen(float16 value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}
INLINE void narrow(float value, bfloat16 &stored) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(stored.bits) : "f"(value));
}
INLINE void narrow(float value, float16 &stored) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(stored.bits) : "f"(value)); }
#else
INLINE float widen(float16 value) { return from_float16(value.bits); }
INLINE void narrow(float value, bfloat16 &stored) { stored.bits = to_bfloat16(value); }
INLINE void narrow(float value, float16 &stored) { stored.bits = to_float16(value); }
#endif

/* The columns of a thread in one step, moved by one instruction that does not linger in the caches. */
template <typename T> struct alignas(sizeof(T) * VECTOR) Pack { T lane[VECTOR]; };
template <int bytes> struct Word;
template <> struct Word<2> { typedef unsigned short type; };
template <> struct Word<4> { typedef unsigned int type; };
template <> struct Word<8> { typedef uint2 type; };
template <> struct Word<16> { typedef uint4 type; };

template <typename T> INLINE Pack<T> read(const T *place) {
  typedef typename Word<sizeof(Pack<T>)>::type word;
  const word raw = __ldcs(reinterpret_cast<const word *>(place));
  Pack<T> pack;
  memcpy(&pack, &raw, sizeof raw);
  return pack;
}

template <typename T> INLINE void write(T *place, const Pack<T> &pack) {
  typedef typename Word<sizeof(Pack<T>)>::type word;
  word raw;
  memcpy(&raw, &pack, sizeof raw);
  __stcs(reinterpret_cast<word *>(place), raw);
}

/* The next ROWS steps, or the `left` that there are, of an array that goes on by `stride`. */
template <typename T> struct Batch {
  Pack<T> row[ROWS];

  INLINE void fetch(const T *place, offset stride, int left) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i)
      if (i < left) row[i] = read(place + i * stride);
  }
};

#ifdef FORWARD
extern "C" __global__ void __launch_bounds__(THREADS)
    FORWARD(const STORED *current, float *potential, STORED *spikes, KEPT *kept, const float *bias, int steps,
            offset columns, float beta, float threshold, float alpha) {
  const offset column = ((offset)blockIdx.x * THREADS + threadIdx.x) * VECTOR;
  if (column >= columns) return;
  current += column, spikes += column, kept += column;

  float v[VECTOR], added[VECTOR], synapse[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    v[j] = potential[column + j];
    added[j] = HAS_BIAS ? bias[column + j] : 0.0f;
    synapse[j] = 0.0f;
  }

  Batch<STORED> now, next;
  now.fetch(current, columns, steps);
  for (int left = steps; left > 0; left -= ROWS) {
    current += ROWS * columns;
    next.fetch(current, columns, left - ROWS);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      if (i >= left) break;
      Pack<STORED> fired;
      Pack<KEPT> distances;
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        float x = widen(now.row[i].lane[j]);
        if (HAS_BIAS) x = __fadd_rn(x, added[j]);
        if (HAS_SYNAPSE) x = synapse[j] = __fadd_rn(__fmul_rn(alpha, synapse[j]), x);
        const float u = __fadd_rn(__fmul_rn(beta, v[j]), x);
        const float distance = __fsub_rn(u, threshold);
        const bool fires = u >= threshold;
        narrow(fires ? 1.0f : 0.0f, fired.lane[j]);
        narrow(distance, distances.lane[j]);
        v[j] = fires ? (RESETS_TO_ZERO ? 0.0f : distance) : u;
      }
      write(spikes, fired);
      if (KEEPS) write(kept, distances);
      spikes += columns, kept += columns;
    }
    now = next;
  }

#pragma unroll
  for (int j = 0; j < VECTOR; ++j) potential[column + j] = v[j];
}
#endif

#ifdef BACKWARD
INLINE float absolute(float value) { return fabsf(value); }
INLINE float exponential(float value) { return __expf(value); }
INLINE float surrogate(float distance, float slope, float threshold) { return SURROGATE; }

extern "C" __global__ void __launch_bounds__(THREADS)
    BACKWARD(const STORED *cotangent, const KEPT *kept, float *carried, STORED *gradient, float *bias_sum,
             float *beta_sum, float *threshold_sum, const float *start, int steps, offset columns, float beta,
             float threshold, float slope, float alpha) {
  const offset column = ((offset)blockIdx.x * THREADS + threadIdx.x) * VECTOR;
  if (column >= columns) return;
  const offset last = (steps - 1) * columns + column;
  cotangent += last, kept += last, gradient += last;

  float gv[VECTOR], by_bias[VECTOR], by_beta[VECTOR], by_threshold[VECTOR];
  float later[VECTOR]; /* gu of the step after, which meets this step's v in dL/dbeta */
  float synapse[VECTOR]; /* dL/dx of the step after */
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    gv[j] = carried[column + j];
    by_bias[j] = by_beta[j] = by_threshold[j] = later[j] = synapse[j] = 0.0f;
  }

  Batch<STORED> cotangents, next_cotangents;
  Batch<KEPT> distances, next_distances;
  cotangents.fetch(cotangent, -columns, steps);
  distances.fetch(kept, -columns, steps);
  for (int left = steps; left > 0; left -= ROWS) {
    cotangent -= ROWS * columns, kept -= ROWS * columns;
    next_cotangents.fetch(cotangent, -columns, left - ROWS);
    next_distances.fetch(kept, -columns, left - ROWS);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      if (i >= left) break;
      Pack<STORED> found;
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        const float distance = widen(distances.row[i].lane[j]);
        const bool fired = __float_as_int(distance) >= 0; /* -0 is a small negative number, rounded */
        const float sg = surrogate(distance, slope, threshold);

        float bracket = widen(cotangents.row[i].lane[j]);
        if (!DETACHED) bracket -= (RESETS_TO_ZERO ? distance + threshold : threshold) * gv[j];
        const float gu = bracket * sg + (RESETS_TO_ZERO && fired ? 0.0f : gv[j]);
        float gi = gu;
        if (HAS_SYNAPSE) gi = synapse[j] = gu + alpha * synapse[j];
        narrow(gi, found.lane[j]);

        if (SUMS_BIAS) by_bias[j] += gi;
        if (SUMS_BETA) {
          const float v = fired ? (RESETS_TO_ZERO ? 0.0f : distance) : distance + threshold;
          by_beta[j] += later[j] * v;
          later[j] = gu;
        }
        if (SUMS_THRESHOLD) by_threshold[j] -= bracket * sg + (!RESETS_TO_ZERO && fired ? gv[j] : 0.0f);
        gv[j] = beta * gu;
      }
      write(gradient, found);
      gradient -= columns;
    }
    cotangents = next_cotangents, distances = next_distances;
  }

#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    carried[column + j] = gv[j];
    if (SUMS_BIAS) bias_sum[column + j] += by_bias[j];
    if (SUMS_BETA) beta_sum[column + j] += by_beta[j] + later[j] * start[column + j];
    if (SUMS_THRESHOLD) threshold_sum[column + j] += by_threshold[j];
  }
}
#endif
