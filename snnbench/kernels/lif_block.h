/* A block of neurons through a stretch of time, forward and backward, and the formats of its numbers.

   Arrays are [T, M] with M = batch * neurons columns, which are independent of each other. A block of columns goes
   through all time steps; its state stays in the L1 cache. What is kept for the backward pass is u - threshold, whose
   sign bit is the spike. Bytes a neuron-step in float32: forward 8 + k (current in, spike out, k = 4 or 2 kept),
   backward 8 + k (cotangent and kept in, gradient out).

   Compiled once for each kind of neuron and number format, with these macros:
     STORE, KEEP        FLOAT32, FLOAT64, BFLOAT16 or FLOAT16: format of current, spikes and gradients; of what is kept
     RESET_ZERO, DETACH 0 or 1
     SURROGATE          an expression in distance, slope and threshold

   State is float, or double where currents are. No contraction of a product and a sum into one rounding: spikes are
   those of the same lines written in any framework. */
#ifndef LIF_BLOCK_H
#define LIF_BLOCK_H
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

enum { NO_SPIKES, STORED, STREAMED }; /* how a block writes its spikes */

/* One block over all steps. `kept`, whose rows are `row` apart, may be `current` itself; `keep` says whether it is
   written, and `fire` how the spikes are. `ahead`: the currents' rows of the same size that are needed next, or absent. */
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
    keep_t *k = keep ? kept + t * row : 0;
    store_t *out = fire == STORED ? spikes + t * M : fired;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      real u = beta * v[j] + (READ_STORE(x[j]) + offset[j]);
      real distance = u - threshold;
      int spike = u >= threshold;
      if (fire) out[j] = WRITE_STORE(spike ? (real)1 : (real)0);
      if (keep) k[j] = WRITE_KEEP(distance);
#if RESET_ZERO
      v[j] = spike ? (real)0 : u;
#else
      v[j] = spike ? distance : u;
#endif
    }
    if (fire == STREAMED) stream(spikes + t * M, fired, columns * (int64_t)sizeof(store_t));
    prefetch(ahead ? ahead + t * M : 0, columns);
  }
  for (int64_t j = 0; j < columns; ++j) potential[j] = v[j];
  if (fire == STREAMED) fence();
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

#endif
