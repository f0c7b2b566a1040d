/* The fused LIF neuron on a CPU: all time steps in one pass over memory, forward and backward.

   Arrays are [T, M] with M = batch * neurons columns, which are independent of each other. A thread takes a block of
   columns through all time steps; the block's state stays in its L1 cache. What is kept for the backward pass is
   u - threshold, whose sign bit is the spike. Bytes a neuron-step in float32: forward 8 + k (current in, spike out,
   k = 4 or 2 kept), backward 8 + k (cotangent and kept in, gradient out).

   Compiled once for each kind of neuron and number format, with these macros:
     STORE, KEEP        FLOAT32, FLOAT64, BFLOAT16 or FLOAT16: format of current, spikes and gradients; of what is kept
     RESET_ZERO, DETACH 0 or 1
     SURROGATE          an expression in distance, slope and threshold
   How fast, on 2 cores of an EPYC (Zen 4, AVX-512, gcc 12), B = 16, T = 500, float32, fast sigmoid, arrays in place:
   N = 512: forward 0.8 to 1.3 ms, backward 1.1 to 1.5, beside 22 ms for each matrix product; N = 2048: forward 5 to 7,
   backward 6.5, beside 345. torch copied as many bytes in 0.6 and 4.9 ms. A training pass of the layer takes 1.09 to
   1.17 (N = 512) and 1.02 to 1.06 (N = 2048) of its two bare products, by `benchmarks kernels`.

   Why C and not Numba: in one run Numba's loops of the same shape took 0.97 to 1.02 of the forward time and 1.09 of the
   backward's (sigmoid, N = 512 and 2048), for 200 MB more to install, no formats of 16 bits, and a second pool of
   threads beside torch's, which this shares.

   State is float, or double where currents are. No contraction of a product and a sum into one rounding: spikes are
   those of the same lines written in any framework. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__) || defined(__AVX__)
#include <immintrin.h>
#endif

#define FLOAT32 0
#define FLOAT64 1
#define BFLOAT16 2
#define FLOAT16 3

#if STORE == FLOAT64
typedef double real;
#define absolute fabs
#else
typedef float real;
#define absolute fabsf
#endif

#define FORMAT_0 float
#define FORMAT_1 double
#define FORMAT_2 uint16_t
#define FORMAT_3 _Float16
#define JOIN(a, b) a##b
#define FORMAT(number) JOIN(FORMAT_, number)
typedef FORMAT(STORE) store_t;
typedef FORMAT(KEEP) keep_t;

enum { COLUMNS = 1024 }; /* of a block: 4 KiB of each array in a row, the state in L1 */
enum { FEW = 1 << 15 };  /* neuron-steps that one thread has done before a second one has woken up */
#define INLINE static inline __attribute__((always_inline))

INLINE float from_bfloat16(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Rounds to nearest, ties to even. What is not a number stays so. */
INLINE uint16_t to_bfloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)(value == value ? rounded : 0x7fc0u);
}

#if STORE == BFLOAT16
#define READ_STORE(x) from_bfloat16(x)
#define WRITE_STORE(x) to_bfloat16(x)
#else
#define READ_STORE(x) ((real)(x))
#define WRITE_STORE(x) ((store_t)(x))
#endif
#if KEEP == BFLOAT16
#define READ_KEEP(x) from_bfloat16(x)
#define WRITE_KEEP(x) to_bfloat16(x)
#else
#define READ_KEEP(x) ((real)(x))
#define WRITE_KEEP(x) ((keep_t)(x))
#endif

#if STORE == FLOAT64
#define exponential exp
#else
/* e^x for x <= 0, the only ones a surrogate asks for, within 2 units in the last place; a library's is not a vector's.
   Range reduction and polynomial after Cephes expf. */
INLINE float exponential(float x) {
  x = x < -87.0f ? -87.0f : x;
  float n = floorf(x * 1.44269504088896341f + 0.5f);
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  int32_t bits = ((int32_t)n + 127) * (1 << 23);
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}
#endif

INLINE real surrogate(real distance, real slope, real threshold) {
  (void)slope;
  (void)threshold;
  return SURROGATE;
}

/* Copies a row past the caches where it can: what is written here is next read by somebody else, much later. */
INLINE void stream(void *to, const void *from, int64_t bytes) {
  int64_t done = 0;
#if defined(__AVX512F__)
  if (((uintptr_t)to & 63) == 0)
    for (; done + 64 <= bytes; done += 64)
      _mm512_stream_si512((void *)((char *)to + done), _mm512_loadu_si512((const char *)from + done));
#elif defined(__AVX__)
  if (((uintptr_t)to & 31) == 0)
    for (; done + 32 <= bytes; done += 32)
      _mm256_stream_si256((void *)((char *)to + done), _mm256_loadu_si256((const void *)((const char *)from + done)));
#endif
  memcpy((char *)to + done, (const char *)from + done, (size_t)(bytes - done));
}

INLINE void fence(void) {
#if defined(__AVX512F__) || defined(__AVX__)
  _mm_sfence();
#endif
}

/* Asks for a row of currents or cotangents before it is needed, into the second cache; no row if absent. */
INLINE void prefetch(const store_t *row, int64_t columns) {
  if (row)
    for (int64_t j = 0; j < columns; j += 64 / (int64_t)sizeof(store_t)) __builtin_prefetch(row + j, 0, 2);
}

/* One block over all steps. `kept`, whose rows are `row` apart, may be `current` itself; `keep` and `fire` say whether
   it and `spikes` are written. `ahead`: the currents' rows of the same size that are needed next, or absent. */
INLINE void forward_block(const store_t *current, real *potential, store_t *spikes, keep_t *kept, int64_t row,
                          const real *bias, int64_t T, int64_t M, int64_t columns, real beta, real threshold,
                          const int keep, const int fire, const store_t *ahead) {
  real v[COLUMNS] __attribute__((aligned(64)));
  real offset[COLUMNS] __attribute__((aligned(64)));
  store_t fired[COLUMNS] __attribute__((aligned(64)));
  for (int64_t j = 0; j < columns; ++j) {
    v[j] = potential[j];
    offset[j] = bias ? bias[j] : (real)0;
  }
  for (int64_t t = 0; t < T; ++t) {
    const store_t *x = current + t * M;
    keep_t *k = kept + t * row;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      real u = beta * v[j] + (READ_STORE(x[j]) + offset[j]);
      real distance = u - threshold;
      int spike = u >= threshold;
      if (fire) fired[j] = WRITE_STORE(spike ? (real)1 : (real)0);
      if (keep) k[j] = WRITE_KEEP(distance);
#if RESET_ZERO
      v[j] = spike ? (real)0 : u;
#else
      v[j] = spike ? distance : u;
#endif
    }
    if (fire) stream(spikes + t * M, fired, columns * (int64_t)sizeof(store_t));
    prefetch(ahead ? ahead + t * M : 0, columns);
  }
  for (int64_t j = 0; j < columns; ++j) potential[j] = v[j];
  if (fire) fence();
}

void forward(const store_t *current, real *potential, store_t *spikes, keep_t *kept, const real *bias, int64_t T,
             int64_t M, double beta, double threshold, int threads) {
  int64_t blocks = (M + COLUMNS - 1) / COLUMNS;
#pragma omp parallel for schedule(static) num_threads(T * M < FEW ? 1 : threads)
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t from = block * COLUMNS, columns = M - from < COLUMNS ? M - from : COLUMNS;
    const real *offset = bias ? bias + from : 0;
    if (kept)
      forward_block(current + from, potential + from, spikes + from, kept + from, M, offset, T, M, columns, (real)beta,
                    (real)threshold, 1, 1, 0);
    else
      forward_block(current + from, potential + from, spikes + from, kept, M, offset, T, M, columns, (real)beta,
                    (real)threshold, 0, 1, 0);
  }
}

/* Sums over time that a caller may want, of each column; absent where it does not. */
typedef struct {
  real *bias, *beta, *threshold;
} sums_t;

/* One block, from the last step to the first. `gradient` may be `kept` itself, whose rows are `row` apart. `ahead`: the
   rows that are needed next, from their last to their first, or absent. */
INLINE void backward_block(const store_t *cotangent, const keep_t *kept, int64_t row, real *carried, store_t *gradient,
                           const real *start, sums_t sums, int64_t T, int64_t M, int64_t columns, real beta,
                           real threshold, real slope, const int bias, const int parameters, const store_t *ahead) {
  real gv[COLUMNS] __attribute__((aligned(64)));
  real by_bias[COLUMNS] __attribute__((aligned(64)));
  real by_beta[COLUMNS] __attribute__((aligned(64)));
  real by_threshold[COLUMNS] __attribute__((aligned(64)));
  for (int64_t j = 0; j < columns; ++j) {
    gv[j] = carried[j];
    by_bias[j] = by_beta[j] = by_threshold[j] = 0;
  }
  for (int64_t t = T - 1; t >= 0; --t) {
    const store_t *gs = cotangent + t * M;
    const keep_t *k = kept + t * row;
    const keep_t *before = t ? k - row : k;
    store_t *out = gradient + t * M;
    prefetch(ahead ? ahead + t * M : 0, columns);
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      real distance = READ_KEEP(k[j]);
      real later = gv[j];
      int spike = !signbit(distance);
#if DETACH
      real bracket = READ_STORE(gs[j]);
#elif RESET_ZERO
      real bracket = READ_STORE(gs[j]) - (distance + threshold) * later;
#else
      real bracket = READ_STORE(gs[j]) - threshold * later;
#endif
      real through = bracket * surrogate(distance, slope, threshold);
#if RESET_ZERO
      real gu = through + (spike ? (real)0 : later);
#else
      real gu = through + later;
#endif
      out[j] = WRITE_STORE(gu);
      gv[j] = beta * gu;
      if (bias) by_bias[j] += gu;
      if (parameters) {
        real last = READ_KEEP(before[j]);
        real reset = signbit(last) ? last + threshold : (RESET_ZERO ? (real)0 : last);
        real v = t ? reset : start[j];
        by_beta[j] += gu * v;
        by_threshold[j] -= through + (!RESET_ZERO && spike ? later : (real)0);
      }
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    carried[j] = gv[j];
    if (bias) sums.bias[j] += by_bias[j];
    if (parameters) sums.beta[j] += by_beta[j];
    if (parameters) sums.threshold[j] += by_threshold[j];
  }
}

void backward(const store_t *cotangent, const keep_t *kept, real *carried, store_t *gradient, const real *start,
              real *bias_sum, real *beta_sum, real *threshold_sum, int64_t T, int64_t M, double beta, double threshold,
              double slope, int threads) {
  int64_t blocks = (M + COLUMNS - 1) / COLUMNS;
#pragma omp parallel for schedule(static) num_threads(T * M < FEW ? 1 : threads)
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t from = block * COLUMNS, columns = M - from < COLUMNS ? M - from : COLUMNS;
    sums_t sums = {bias_sum + from, beta_sum + from, threshold_sum + from};
#define BLOCK(BIAS, PARAMETERS)                                                                                    \
  backward_block(cotangent + from, kept + from, M, carried + from, gradient + from, start + from, sums, T, M, columns, \
                 (real)beta, (real)threshold, (real)slope, BIAS, PARAMETERS, 0)
    if (bias_sum && beta_sum) BLOCK(1, 1);
    else if (bias_sum) BLOCK(1, 0);
    else if (beta_sum) BLOCK(0, 1);
    else BLOCK(0, 0);
  }
}

/* The neuron alone, which keeps no step: the backward pass computes u - threshold again from the currents, STRETCH steps
   of a block at a time, in the cache. It reads the currents in place of kept values, so a training pass moves the least
   bytes that there are. While one array is read, the next one is asked for: without that the two halves of the work take
   turns with the memory.
   Arrays [T, M] may be columns of wider arrays: their rows are `row` numbers apart.
   Absent arrays: a `start` of zeros, a `last` that nobody needs, the `states` of a pass without gradients. */
#if KEEP == FLOAT64 || (KEEP == FLOAT32 && STORE != FLOAT64)
enum { NARROW = 512 }; /* columns of a block: a stretch's values are 64 KiB in float32 */

INLINE void copy_or_zero(real *to, const real *from, int64_t count) {
  for (int64_t j = 0; j < count; ++j) to[j] = from ? from[j] : (real)0;
}

/* `states` [(T - 1) / STRETCH, M]: the potential before each stretch but the first. */
void forward_alone(const store_t *current, const real *start, store_t *spikes, real *states, real *last,
                   const real *bias, int64_t T, int64_t M, int64_t row, double beta, double threshold, int threads) {
  int64_t blocks = (M + COLUMNS - 1) / COLUMNS;
#pragma omp parallel for schedule(static) num_threads(T * M < FEW ? 1 : threads)
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t from = block * COLUMNS, columns = M - from < COLUMNS ? M - from : COLUMNS;
    real v[COLUMNS] __attribute__((aligned(64)));
    copy_or_zero(v, start ? start + from : 0, columns);
    for (int64_t t = 0; t < T; t += STRETCH) {
      if (t && states) copy_or_zero(states + (t / STRETCH - 1) * M + from, v, columns);
      forward_block(current + t * row + from, v, spikes + t * row + from, 0, 0, bias ? bias + from : 0,
                    T - t < STRETCH ? T - t : STRETCH, row, columns, (real)beta, (real)threshold, 0, 1, 0);
    }
    if (last) copy_or_zero(last + from, v, columns);
  }
}

/* `carried`: dL/dv after the last step, zeros if absent; `first`: dL/dv before the first step, if it is needed. */
void backward_alone(const store_t *current, const store_t *cotangent, const real *start, const real *states,
                    const real *carried, store_t *gradient, real *first, const real *bias, real *bias_sum,
                    real *beta_sum, real *threshold_sum, int64_t T, int64_t M, int64_t row, double beta,
                    double threshold, double slope, int threads) {
  int64_t blocks = (M + NARROW - 1) / NARROW;
#pragma omp parallel for schedule(static) num_threads(T * M < FEW ? 1 : threads)
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t from = block * NARROW, columns = M - from < NARROW ? M - from : NARROW;
    const real *offset = bias ? bias + from : 0;
    sums_t sums = {bias_sum + from, beta_sum + from, threshold_sum + from};
    real gv[NARROW], before[NARROW], v[NARROW];
    keep_t distances[STRETCH * NARROW] __attribute__((aligned(64)));
    copy_or_zero(gv, carried ? carried + from : 0, columns);
    for (int64_t t = T ? (T - 1) / STRETCH * STRETCH : -1; t >= 0; t -= STRETCH) {
      int64_t steps = T - t < STRETCH ? T - t : STRETCH, at = t * row + from;
      const store_t *earlier = t ? current + at - STRETCH * row : 0;
      copy_or_zero(before, t ? states + (t / STRETCH - 1) * M + from : start ? start + from : 0, columns);
      copy_or_zero(v, before, columns);
      forward_block(current + at, v, 0, distances, NARROW, offset, steps, row, columns, (real)beta, (real)threshold, 1,
                    0, cotangent + at);
#define STRETCH_BLOCK(BIAS, PARAMETERS)                                                                        \
  backward_block(cotangent + at, distances, NARROW, gv, gradient + at, before, sums, steps, row, columns, (real)beta, \
                 (real)threshold, (real)slope, BIAS, PARAMETERS, earlier)
      if (bias_sum && beta_sum) STRETCH_BLOCK(1, 1);
      else if (bias_sum) STRETCH_BLOCK(1, 0);
      else if (beta_sum) STRETCH_BLOCK(0, 1);
      else STRETCH_BLOCK(0, 0);
    }
    if (first) copy_or_zero(first + from, gv, columns);
  }
}
#endif
