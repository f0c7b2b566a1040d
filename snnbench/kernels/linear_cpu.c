/* The linear layer and the fused LIF neuron on a CPU: one call each way, and at most one parallel region in it.

   A thread takes a range of neurons through all stretches of time: its columns of the product, its neurons, its rows of
   the weight's gradient and of the bias's. Each product is the framework's own, on one thread. Only the gradient of the
   inputs needs the neurons of all threads: one barrier in each stretch, and two buffers that take turns.

   Matrices are stored by rows. BLAS stores them by columns, so it sees each of them transposed. Macros and formats are
   those of lif_block.h; STORE is FLOAT32 or FLOAT64.

   What bounds a training pass, by `benchmarks limit` on 2 cores of an EPYC (Zen 4, AVX-512, gcc 12), B = 16, T = 100,
   float32, with the inputs' gradient. The floor is the three products alone; the parts are microseconds beyond it:
     N       16     64    256    512   2048
     pass  5.76   2.19   1.35   1.11   1.02 x floor
           135    246    848    881          dispatch: Python, autograd, memory; slow where a pass empties the caches
            19     67    443    908   2812   neurons: bytes of the caches, then of memory
             7     13     77                 products, on a range of neurons each
   Barriers take 0 to 40 us, and cannot be told from noise. */
#include <omp.h>

#include "lif_block.h"

/* ?gemm of the framework. Sizes have 64 bits: a library that reads 32 of them sees the same number. */
typedef void (*product_t)(const char *, const char *, const int64_t *, const int64_t *, const int64_t *, const store_t *,
                          const store_t *, const int64_t *, const store_t *, const int64_t *, const store_t *, store_t *,
                          const int64_t *);
/* Sets the number of threads of the calling thread's products, and returns the one before. Each thread of a parallel
   region calls it, because a library with another pool of threads does not know that it is in one. */
typedef int (*limit_t)(int);
static product_t product;
static limit_t limit;
static const store_t ZERO = 0, ONE = 1;

void use(product_t a_product, limit_t a_limit) {
  product = a_product;
  limit = a_limit;
}

enum { UNIT = 64 / sizeof(real) }; /* neurons of a cache line, which two threads never share */
enum { CACHED = 4 << 20 };         /* bytes of spikes that a cache may keep until they are read */

typedef struct {
  int64_t T, B, K, N, length; /* time steps, batch, inputs, neurons, time steps of a stretch */
  const store_t *inputs, *weight;
  const real *bias, *start; /* absent: zeros */
  real beta, threshold, slope;
} layer_t;

typedef struct {
  int64_t from, to;
} range_t;

/* The range of `count` items that belongs to thread `rank` of `threads`, in whole units. */
static range_t share(int64_t count, int64_t unit, int rank, int threads) {
  int64_t units = (count + unit - 1) / unit;
  range_t range = {units * rank / threads * unit, units * (rank + 1) / threads * unit};
  if (range.from > count) range.from = count;
  if (range.to > count) range.to = count;
  return range;
}

/* The columns of a range of neurons, in blocks: all of them in a row, or a strip of columns for each sample. */
typedef struct {
  int64_t strips, width, from, pieces;
} columns_t;

static columns_t columns_of(const layer_t *layer, range_t neurons) {
  int whole = neurons.to - neurons.from == layer->N;
  int64_t width = whole ? layer->B * layer->N : neurons.to - neurons.from;
  return (columns_t){whole ? 1 : layer->B, width, neurons.from, (width + COLUMNS - 1) / COLUMNS};
}

/* The first column of block `number`; `columns` receives how many it has. */
static int64_t block_at(const layer_t *layer, columns_t all, int64_t number, int64_t *columns) {
  int64_t done = number % all.pieces * COLUMNS;
  *columns = all.width - done < COLUMNS ? all.width - done : COLUMNS;
  return number / all.pieces * layer->N + all.from + done;
}

static int64_t steps_from(const layer_t *layer, int64_t t) {
  return layer->T - t < layer->length ? layer->T - t : layer->length;
}

/* Currents of a range of neurons, without the bias, for the stretch at step `t`. */
static void multiply(const layer_t *layer, range_t neurons, int64_t t, store_t *current) {
  int64_t rows = steps_from(layer, t) * layer->B, count = neurons.to - neurons.from;
  product("T", "N", &count, &rows, &layer->K, &ONE, layer->weight + neurons.from * layer->K, &layer->K,
          layer->inputs + t * layer->B * layer->K, &layer->K, &ZERO, current + neurons.from, &layer->N);
}

/* The bias of each column of a block. */
static void offsets(const layer_t *layer, int64_t at, int64_t columns, real *offset) {
  for (int64_t j = 0, neuron = at % layer->N; j < columns; ++j, neuron = neuron + 1 < layer->N ? neuron + 1 : 0)
    offset[j] = layer->bias ? layer->bias[neuron] : (real)0;
}

/* `kept` [T, B, N], whose memory has the currents first if there is no `scratch` for them, or absent; `states`, the
   potential before each stretch, or absent. */
static void forward_range(const layer_t *layer, range_t neurons, real *potential, store_t *spikes, keep_t *kept,
                          real *states, store_t *scratch) {
  const int64_t M = layer->B * layer->N;
  const columns_t all = columns_of(layer, neurons);
  const int streamed = layer->T * M * (int64_t)sizeof(store_t) > CACHED;
  real offset[COLUMNS] __attribute__((aligned(64)));
  for (int64_t t = 0; t < layer->T; t += layer->length) {
    store_t *current = scratch ? scratch : (store_t *)(kept + t * M);
    multiply(layer, neurons, t, current);
    for (int64_t number = 0; number < all.strips * all.pieces; ++number) {
      int64_t columns, at = block_at(layer, all, number, &columns);
      real *v = potential + at;
      if (!t)
        for (int64_t j = 0; j < columns; ++j) v[j] = layer->start ? layer->start[at + j] : (real)0;
      if (states) memcpy(states + t / layer->length * M + at, v, (size_t)columns * sizeof(real));
      offsets(layer, at, columns, offset);
#define FORWARD(KEPT, FIRE)                                                                                            \
  forward_block(current + at, v, spikes + t * M + at, KEPT ? kept + t * M + at : 0, M, offset, steps_from(layer, t), M, \
                columns, layer->beta, layer->threshold, KEPT, FIRE, 0)
      if (kept && streamed) FORWARD(1, STREAMED);
      else if (kept) FORWARD(1, STORED);
      else if (streamed) FORWARD(0, STREAMED);
      else FORWARD(0, STORED);
    }
  }
}

void linear_forward(const store_t *inputs, const store_t *weight, const real *bias, const real *start, real *potential,
                    store_t *spikes, keep_t *kept, real *states, store_t *scratch, int64_t T, int64_t B, int64_t K,
                    int64_t N, int64_t length, double beta, double threshold, int threads) {
  const layer_t layer = {T, B, K, N, length, inputs, weight, bias, start, (real)beta, (real)threshold, 0};
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    range_t neurons = share(N, UNIT, omp_get_thread_num(), omp_get_num_threads());
    int before = limit(1);
    if (neurons.to > neurons.from) forward_range(&layer, neurons, potential, spikes, kept, states, scratch);
    limit(before);
  }
}

/* What a backward pass reads and writes beside the layer; absent where it is not wanted. `kept` or `states` is there. */
typedef struct {
  const store_t *cotangent;
  const keep_t *kept;
  const real *states;
  keep_t *again;          /* [length, B, N], for values that are computed again from `states` */
  const real *carried;    /* absent: zeros */
  real *first;            /* dL/dv: of the last step first, then that before the first step */
  store_t *gradient;      /* [1 or 2, length, B, N]: dL/d current */
  int buffers;            /* how many of them there are */
  store_t *by_input, *by_weight;
  real *by_bias, *by_beta, *by_threshold; /* [N] */
} gradients_t;

/* The potential before the stretch at step `t`, of a block of columns. */
static void potential_before(const layer_t *layer, const gradients_t *pass, int64_t t, int64_t at, int64_t columns,
                             real *before) {
  const int64_t M = layer->B * layer->N;
  const real *known = pass->states ? pass->states + t / layer->length * M : t ? 0 : layer->start;
  const keep_t *last = pass->states || !t ? 0 : pass->kept + (t - 1) * M;
  for (int64_t j = 0; j < columns; ++j) {
    real distance = last ? READ_KEEP(last[at + j]) : (real)0;
    before[j] = known  ? known[at + j]
                : last ? (signbit(distance) ? distance + layer->threshold : RESET_ZERO ? (real)0 : distance)
                       : (real)0;
  }
}

/* dL/d current of a block of columns, for the stretch at step `t`. */
static void backward_columns(const layer_t *layer, const gradients_t *pass, int64_t t, int64_t at, int64_t columns,
                             store_t *gradient) {
  const int64_t M = layer->B * layer->N, steps = steps_from(layer, t);
  real before[COLUMNS] __attribute__((aligned(64)));
  real by[3][COLUMNS] __attribute__((aligned(64)));
  const keep_t *kept = pass->states ? pass->again + at : pass->kept + t * M + at;
  if (pass->states || pass->by_beta) potential_before(layer, pass, t, at, columns, before);
#if KEEP == STORE
  if (pass->states) {
    real offset[COLUMNS], v[COLUMNS];
    offsets(layer, at, columns, offset);
    memcpy(v, before, (size_t)columns * sizeof(real));
    forward_block(pass->again + at, v, 0, pass->again + at, M, offset, steps, M, columns, layer->beta, layer->threshold, 1, NO_SPIKES,
                  0);
  }
#endif
  memset(by, 0, sizeof by);
  const sums_t sums = {by[0], by[1], by[2]};
#define BACKWARD(BIAS, PARAMETERS)                                                                                   \
  backward_block(pass->cotangent + t * M + at, kept, M, pass->first + at, gradient + at, before, sums, steps, M, columns, \
                 layer->beta, layer->threshold, layer->slope, BIAS, PARAMETERS, 0)
  if (pass->by_beta) BACKWARD(1, 1);
  else if (pass->by_bias) BACKWARD(1, 0);
  else BACKWARD(0, 0);
  for (int64_t j = 0, neuron = at % layer->N; j < columns; ++j, neuron = neuron + 1 < layer->N ? neuron + 1 : 0) {
    if (pass->by_bias) pass->by_bias[neuron] += by[0][j];
    if (pass->by_beta) pass->by_beta[neuron] += by[1][j];
    if (pass->by_beta) pass->by_threshold[neuron] += by[2][j];
  }
}

/* One thread's share of a backward pass, from the last stretch to the first. */
static void backward_range(const layer_t *layer, const gradients_t *pass, int rank, int threads) {
  const int64_t M = layer->B * layer->N, K = layer->K;
  const range_t neurons = share(layer->N, UNIT, rank, threads);
  const int64_t count = neurons.to - neurons.from, last = (layer->T - 1) / layer->length;
  const columns_t all = columns_of(layer, neurons);
  real *sums[] = {pass->by_bias, pass->by_beta, pass->by_threshold};
  for (int i = 0; i < 3; ++i)
    if (sums[i]) memset(sums[i] + neurons.from, 0, (size_t)count * sizeof(real));
  for (int64_t b = 0; b < layer->B; ++b)
    for (int64_t j = b * layer->N + neurons.from; j < b * layer->N + neurons.to; ++j)
      pass->first[j] = pass->carried ? pass->carried[j] : (real)0;
  for (int64_t stretch = last; stretch >= 0; --stretch) {
    int64_t t = stretch * layer->length, rows = steps_from(layer, t) * layer->B;
    const store_t *inputs = layer->inputs + t * layer->B * K;
    store_t *gradient = pass->gradient + (pass->buffers > 1 && stretch & 1 ? layer->length * M : 0);
    if (count) {
      if (pass->states) multiply(layer, neurons, t, (store_t *)pass->again);
      for (int64_t number = 0; number < all.strips * all.pieces; ++number) {
        int64_t columns, at = block_at(layer, all, number, &columns);
        backward_columns(layer, pass, t, at, columns, gradient);
      }
      if (pass->by_weight)
        product("N", "T", &K, &count, &rows, &ONE, inputs, &K, gradient + neurons.from, &layer->N,
                stretch == last ? &ZERO : &ONE, pass->by_weight + neurons.from * K, &K);
    }
    if (!pass->by_input) continue;
    if (threads > 1) {
#pragma omp barrier
    }
    range_t part = share(rows, 1, rank, threads);
    int64_t own = part.to - part.from;
    if (own)
      product("N", "N", &K, &own, &layer->N, &ONE, layer->weight, &K, gradient + part.from * layer->N, &layer->N, &ZERO,
              pass->by_input + (t * layer->B + part.from) * K, &K);
  }
}

void linear_backward(const store_t *inputs, const store_t *weight, const real *bias, const real *start,
                     const store_t *cotangent, const keep_t *kept, const real *states, keep_t *again,
                     const real *carried, real *first, store_t *gradient, store_t *by_input, store_t *by_weight,
                     real *by_bias, real *by_beta, real *by_threshold, int64_t T, int64_t B, int64_t K, int64_t N,
                     int64_t length, double beta, double threshold, double slope, int buffers, int threads) {
  const layer_t layer = {T, B, K, N, length, inputs, weight, bias, start, (real)beta, (real)threshold, (real)slope};
  const gradients_t pass = {cotangent, kept,    states,   again,     carried, first,   gradient,
                            buffers,   by_input, by_weight, by_bias, by_beta, by_threshold};
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    int before = limit(1);
    backward_range(&layer, &pass, omp_get_thread_num(), omp_get_num_threads());
    limit(before);
  }
}
