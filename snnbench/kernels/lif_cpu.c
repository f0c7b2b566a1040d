/* The fused LIF neuron on a CPU: all time steps in one pass over memory, forward and backward.

   Arrays and macros are those of lif_block.h. A thread takes a block of columns through all time steps.

   How fast, on 2 cores of an EPYC (Zen 4, AVX-512, gcc 12), B = 16, T = 500, float32, fast sigmoid, arrays in place:
   N = 512: forward 0.8 to 1.3 ms, backward 1.1 to 1.5, beside 22 ms for each matrix product; N = 2048: forward 5 to 7,
   backward 6.5, beside 345. torch copied as many bytes in 0.6 and 4.9 ms.

   Why C and not Numba: in one run Numba's loops of the same shape took 0.97 to 1.02 of the forward time and 1.09 of the
   backward's (sigmoid, N = 512 and 2048), for 200 MB more to install, no formats of 16 bits, and a second pool of
   threads beside torch's, which this shares. */
#include "lif_block.h"

void forward(const store_t *current, real *potential, store_t *spikes, keep_t *kept, const real *bias, int64_t T,
             int64_t M, double beta, double threshold, int threads) {
  int64_t blocks = (M + COLUMNS - 1) / COLUMNS;
#pragma omp parallel for schedule(static) num_threads(T * M < FEW ? 1 : threads)
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t from = block * COLUMNS, columns = M - from < COLUMNS ? M - from : COLUMNS;
    const real *offset = bias ? bias + from : 0;
    if (kept)
      forward_block(current + from, potential + from, spikes + from, kept + from, M, offset, T, M, columns, (real)beta,
                    (real)threshold, 1, STREAMED, 0);
    else
      forward_block(current + from, potential + from, spikes + from, kept, M, offset, T, M, columns, (real)beta,
                    (real)threshold, 0, STREAMED, 0);
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
                    T - t < STRETCH ? T - t : STRETCH, row, columns, (real)beta, (real)threshold, 0, STREAMED, 0);
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
                    NO_SPIKES, cotangent + at);
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
