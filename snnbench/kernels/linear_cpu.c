/* The linear layer and the fused LIF neuron on a CPU: one call each way, in tasks that threads share (team.h).

   A task takes a range of neurons through all stretches of time: its columns of the product, its neurons, its rows of
   the weight's gradient and of the bias's. Each product is the framework's own on one thread, or made of tiles
   (tiles.h); those with the inputs may be made of events (events.h). Only the gradient of the inputs needs the neurons
   of all ranges. Then each stretch has two phases of tasks: ranges of neurons, then of inputs.

   Matrices are stored by rows. BLAS stores them by columns, so it sees each of them transposed. Macros and formats are
   those of lif_block.h; STORE is FLOAT32 or FLOAT64.

   What bounds a training pass, by `benchmarks limit` on 2 cores of an EPYC (Zen 5, AVX-512, gcc 12), B = 16, T = 100,
   float32, with the inputs' gradient. The floor is the three products alone, by oneDNN from N = 64 on; the parts are
   microseconds beyond it:
     N       16     64    256    512   2048
     pass  2.15   1.41   1.13   1.13   1.07 x floor
            25     30     71    251    425   outside of C: autograd and memory; slow where a pass empties the caches
             6     58    136    235   1706   neurons: bytes of the caches, then of memory
                                 242   4442   products, in stretches and tiles
   Since then a call has become shorter, and a range in a small layer wider: at N = 64 a pass takes less time. */
#include "lif_block.h"
#include "events.h"
#include "linear_cpu.h"
#include "team.h"
#include "tiles.h"

/* ?gemm of the framework. Sizes have 64 bits: a library that reads 32 of them sees the same number. */
typedef void (*product_t)(const char *, const char *, const int64_t *, const int64_t *, const int64_t *, const store_t *,
                          const store_t *, const int64_t *, const store_t *, const int64_t *, const store_t *, store_t *,
                          const int64_t *);
/* Sets the number of threads of the calling thread's products, and returns the one before. */
typedef int (*limit_t)(int);
static product_t product;
static limit_t limit;
static tile_t tile; /* absent: products are BLAS's */
static const store_t ZERO = 0, ONE = 1;

void use(product_t a_product, limit_t a_limit, tile_t a_tile) {
  product = a_product;
  limit = a_limit;
  tile = a_tile;
}

/* Called before the first pass, with the process that imported linear_cpu.py: perhaps a parent of this one. */
void imported_by(int64_t process) { team.process = (pid_t)process; }

enum { UNIT = 64 / sizeof(real) }; /* neurons of a cache line, which two threads never share */
enum { CACHED = 4 << 20 };         /* bytes of spikes that a cache may keep until they are read */
enum { LEAN_TILES = 1 << 21 };     /* multiplications of a product from which on a lean pass has tiles */
enum { RANGES = 2 };               /* of neurons for a thread: a thread that is late leaves the other ones to others */
enum { LEAST_UNITS = 2 };          /* of each of so many ranges: with fewer, products are slow */

typedef struct {
  int64_t T, B, K, N, length; /* time steps, batch, inputs, neurons, time steps of a stretch */
  const store_t *inputs, *weight;
  const real *bias, *start; /* absent: zeros */
  real beta, threshold, slope;
  int ranges; /* of neurons, which are tasks of their own */
  int tiled;  /* whether products are made of tiles */
  int sparse; /* whether those with the inputs are made of events instead */
  search_t search;
} layer_t;

/* `lean` is a pass that keeps states. Its products are BLAS's if they are small: the code of tiles, which oneDNN makes for
   each size, would take more memory than the rest of the pass. */
static layer_t layer_of(const sizes_t *sizes, const void *inputs, const void *weight, const void *bias,
                        const void *start, int ranges, int lean) {
  layer_t layer = {.T = sizes->steps, .B = sizes->batch, .K = sizes->inputs, .N = sizes->neurons};
  layer.length = sizes->length;
  layer.inputs = inputs;
  layer.weight = weight;
  layer.bias = bias;
  layer.start = start;
  layer.beta = (real)sizes->beta;
  layer.threshold = (real)sizes->threshold;
  layer.slope = (real)sizes->slope;
  layer.ranges = ranges;
  layer.sparse = sizes->sparse != 0;
  layer.search = (search_t){inputs, layer.T * layer.B, layer.K, layer.length * layer.B};
  layer.tiled = tile && !(lean && layer.T * layer.B * layer.K * layer.N < LEAN_TILES);
  return layer;
}

typedef struct {
  int64_t from, to;
} range_t;

/* The first unit of range `number`. The first half of many ranges is three times as long as the second half. */
static int64_t begin_of(int64_t units, int64_t number, int ranges) {
  if (units < 4 * ranges || ranges % 2) return units * number / ranges;
  int64_t half = ranges / 2, late = number > half ? number - half : 0;
  return units * (3 * (number - late) + late) / (4 * half);
}

/* Range `number` of `ranges` that divide `count` items, in whole units. */
static range_t share(int64_t count, int64_t unit, int64_t number, int ranges) {
  int64_t units = (count + unit - 1) / unit;
  range_t range = {begin_of(units, number, ranges) * unit, begin_of(units, number + 1, ranges) * unit};
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
#if STORE == FLOAT32
  if (layer->sparse) {
    event_currents(&layer->search.by_row, t * layer->B, layer->weight + neurons.from * layer->K, current + neurons.from,
                   rows, layer->K, count, layer->N);
    return;
  }
  if (layer->tiled) {
    tiled_currents(tile, layer->inputs + t * layer->B * layer->K, layer->weight + neurons.from * layer->K,
                   current + neurons.from, rows, layer->K, count, layer->N);
    return;
  }
#endif
  product("T", "N", &count, &rows, &layer->K, &ONE, layer->weight + neurons.from * layer->K, &layer->K,
          layer->inputs + t * layer->B * layer->K, &layer->K, &ZERO, current + neurons.from, &layer->N);
}

/* The bias of each column of a block. */
static void offsets(const layer_t *layer, int64_t at, int64_t columns, real *offset) {
  for (int64_t j = 0, neuron = at % layer->N; j < columns; ++j, neuron = neuron + 1 < layer->N ? neuron + 1 : 0)
    offset[j] = layer->bias ? layer->bias[neuron] : (real)0;
}

/* The ranges of neurons for so many threads. */
static int ranges_of(int64_t neurons, int threads) {
  const int64_t units = (neurons + UNIT - 1) / UNIT, most = RANGES * (int64_t)threads;
  const int64_t wanted = threads < 2 ? 1 : most * LEAST_UNITS <= units ? most : threads;
  return (int)(wanted < units ? wanted : units);
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

typedef struct {
  const layer_t *layer;
  real *potential;
  store_t *spikes;
  keep_t *kept;
  real *states;
  store_t *scratch;
} forward_t;

static void forward_task(const void *work, int64_t number) {
  const forward_t *pass = work;
  int before = limit(1);
  forward_range(pass->layer, share(pass->layer->N, UNIT, number, pass->layer->ranges), pass->potential, pass->spikes,
                pass->kept, pass->states, pass->scratch);
  limit(before);
}

void linear_forward(const forward_pass_t *pass) {
  const int ranges = ranges_of(pass->sizes.neurons, (int)pass->sizes.threads);
  layer_t layer = layer_of(&pass->sizes, pass->inputs, pass->weight, pass->bias, pass->start, ranges, !!pass->states);
  const forward_t task = {&layer, pass->potential, pass->spikes, pass->kept, pass->states, pass->scratch};
  if (layer.sparse) find_events(&layer.search, 0, (int)pass->sizes.threads);
  run_tasks(forward_task, &task, ranges, ranges, (int)pass->sizes.threads);
  forget_events(&layer.search);
}

/* What a backward pass reads and writes beside the layer; absent where it is not wanted. `kept` or `states` is there. */
typedef struct {
  const layer_t *layer;
  const store_t *cotangent;
  const keep_t *kept;
  const real *states;
  keep_t *again;          /* [length, B, N], for values that are computed again from `states`; may be `gradient` */
  const real *carried;    /* absent: zeros */
  real *first;            /* dL/dv: of the last step first, then that before the first step */
  store_t *gradient;      /* [length, B, N]: dL/d current */
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

/* The sums and the last step's dL/dv of a range of neurons, before its first stretch. */
static void begin_backward(const layer_t *layer, const gradients_t *pass, range_t neurons) {
  real *sums[] = {pass->by_bias, pass->by_beta, pass->by_threshold};
  for (int i = 0; i < 3; ++i)
    if (sums[i]) memset(sums[i] + neurons.from, 0, (size_t)(neurons.to - neurons.from) * sizeof(real));
  for (int64_t b = 0; b < layer->B; ++b)
    for (int64_t j = b * layer->N + neurons.from; j < b * layer->N + neurons.to; ++j)
      pass->first[j] = pass->carried ? pass->carried[j] : (real)0;
}

/* A range of neurons in the stretch at step `t`: their gradients, and their rows of the weight's. */
static void backward_neurons(const layer_t *layer, const gradients_t *pass, range_t neurons, int64_t t) {
  const int64_t K = layer->K, rows = steps_from(layer, t) * layer->B, count = neurons.to - neurons.from;
  const columns_t all = columns_of(layer, neurons);
  if (pass->states) multiply(layer, neurons, t, (store_t *)pass->again);
  for (int64_t number = 0; number < all.strips * all.pieces; ++number) {
    int64_t columns, at = block_at(layer, all, number, &columns);
    backward_columns(layer, pass, t, at, columns, pass->gradient);
  }
  if (!pass->by_weight) return;
  const int adds = t + layer->length < layer->T;
#if STORE == FLOAT32
  if (layer->sparse) {
    event_by_weight(&layer->search.by_input, t / layer->length * K, pass->gradient + neurons.from,
                    pass->by_weight + neurons.from * K, rows, K, count, layer->N, adds);
    return;
  }
  if (layer->tiled) {
    tiled_by_weight(tile, pass->gradient + neurons.from, layer->inputs + t * layer->B * K,
                    pass->by_weight + neurons.from * K, rows, K, count, layer->N, adds);
    return;
  }
#endif
  product("N", "T", &K, &count, &rows, &ONE, layer->inputs + t * layer->B * K, &K, pass->gradient + neurons.from,
          &layer->N, adds ? &ONE : &ZERO, pass->by_weight + neurons.from * K, &K);
}

/* A share of the inputs' gradient in the stretch at step `t`: some of its columns if it has many more of them than rows,
   or else some of its rows. Every share reads the smaller factor of the product as a whole. */
static void backward_inputs(const layer_t *layer, const gradients_t *pass, int64_t t, int64_t number) {
  const int64_t rows = steps_from(layer, t) * layer->B;
  store_t *by_input = pass->by_input + t * layer->B * layer->K;
#if STORE == FLOAT32
  if (layer->tiled && layer->K > 2 * rows) {
    const range_t inputs = share(layer->K, UNIT, number, layer->ranges);
    tiled_by_input(tile, pass->gradient, layer->weight + inputs.from, by_input + inputs.from, rows,
                   inputs.to - inputs.from, layer->N, layer->K);
    return;
  }
#endif
  const range_t range = share(rows, layer->tiled ? UNIT : 1, number, layer->ranges);
  const int64_t count = range.to - range.from;
  const store_t *gradient = pass->gradient + range.from * layer->N;
  by_input += range.from * layer->K;
  if (!count) return;
#if STORE == FLOAT32
  if (layer->tiled) {
    tiled_by_input(tile, gradient, layer->weight, by_input, count, layer->K, layer->N, layer->K);
    return;
  }
#endif
  product("N", "N", &layer->K, &count, &layer->N, &ONE, layer->weight, &layer->K, gradient, &layer->N, &ZERO, by_input,
          &layer->K);
}

/* A range of neurons through all stretches, from the last one on. */
static void backward_task(const void *work, int64_t number) {
  const gradients_t *pass = work;
  const layer_t *layer = pass->layer;
  const range_t neurons = share(layer->N, UNIT, number, layer->ranges);
  int before = limit(1);
  begin_backward(layer, pass, neurons);
  for (int64_t t = (layer->T - 1) / layer->length * layer->length; t >= 0; t -= layer->length)
    backward_neurons(layer, pass, neurons, t);
  limit(before);
}

/* The same with the inputs' gradient: a task of one stretch, in a phase of neurons or in the phase of inputs after it. */
static void backward_phase_task(const void *work, int64_t number) {
  const gradients_t *pass = work;
  const layer_t *layer = pass->layer;
  const int64_t phase = number / layer->ranges, range = number % layer->ranges;
  const int64_t t = ((layer->T - 1) / layer->length - phase / 2) * layer->length;
  int before = limit(1);
  if (phase % 2) {
    backward_inputs(layer, pass, t, range);
  } else {
    const range_t neurons = share(layer->N, UNIT, range, layer->ranges);
    if (!phase) begin_backward(layer, pass, neurons);
    backward_neurons(layer, pass, neurons, t);
  }
  limit(before);
}

void linear_backward(const backward_pass_t *pass) {
  const int threads = (int)pass->sizes.threads, ranges = ranges_of(pass->sizes.neurons, threads);
  const int64_t stretches = (pass->sizes.steps + pass->sizes.length - 1) / pass->sizes.length;
  layer_t layer = layer_of(&pass->sizes, pass->inputs, pass->weight, pass->bias, pass->start, ranges, !!pass->states);
  const gradients_t task = {&layer,           pass->cotangent, pass->kept,    pass->states,
                            pass->again,      pass->carried,   pass->first,   pass->gradient,
                            pass->by_input,   pass->by_weight, pass->by_bias, pass->by_beta,
                            pass->by_threshold};
  if (layer.sparse) find_events(&layer.search, 1, threads);
  if (task.by_input) run_tasks(backward_phase_task, &task, 2 * stretches * ranges, ranges, threads);
  else run_tasks(backward_task, &task, ranges, ranges, threads);
  forget_events(&layer.search);
}
