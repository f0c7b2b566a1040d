/* Products with inputs that are mostly 0: an input that is not 0 is an event, and nothing else is multiplied.

   A row of currents is a sum of columns of the weight, one for each event of the row. A column of the weight's gradient
   is a sum of rows of the currents' gradient, one for each event of the column's input. The neurons of a product are in
   bands, whose numbers stay in the second cache while all events pass.

   How many times as long a training pass takes with dense products (`fused/cpu`), and with the same products in plain
   PyTorch (`event-driven`): medians of the recording 2026-11-30_sparse, on 2 cores of an EPYC with AVX-512:
     spikes                0.1 %    1 %    3 %   10 %   30 %
     dense, N = 512          4.9    4.7    3.2    2.1   0.95
     dense, N = 2048        11.6    7.6    6.0    2.9   0.93
     PyTorch, N = 512       12.0    9.0    5.9    4.5    3.9
     PyTorch, N = 2048       4.4    3.6    4.2    3.3    2.9 */
#ifndef EVENTS_H
#define EVENTS_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "team.h"
#include "tiles.h"

enum { BAND = 64 };   /* neurons */
enum { ROWS = 64 };   /* of a task that looks for events */
enum { BLOCK = 16 };  /* inputs that are passed over together if all are 0 */
enum { TURNED = 64 }; /* inputs whose sums are written together */

/* The events of groups: of rows, or of inputs in a stretch of time. Group i begins at first[i], and its last slot,
   first[i + 1] - 1, holds no event. `place` is the input of an event, or its row in the stretch. */
typedef struct {
  int64_t *first;
  int32_t *place;
  float *value;
} events_t;

/* Inputs [rows, entering] in stretches of so many rows, and their events. */
typedef struct {
  const float *inputs;
  int64_t rows, entering, length;
  events_t by_row, by_input;
} search_t;

/* Where each group begins, from the number of its events at first[group + 1]; memory for the events. */
static void begin_groups(events_t *events, int64_t groups) {
  for (int64_t i = 0; i < groups; ++i) events->first[i + 1] += events->first[i] + 1;
  events->place = malloc((size_t)events->first[groups] * sizeof *events->place);
  events->value = malloc((size_t)events->first[groups] * sizeof *events->value);
}

static void count_task(const void *work, int64_t number) {
  const search_t *search = work;
  for (int64_t row = number * ROWS; row < least((number + 1) * ROWS, search->rows); ++row) {
    const float *inputs = search->inputs + row * search->entering;
    int32_t count = 0;
    for (int64_t k = 0; k < search->entering; ++k) count += inputs[k] != 0;
    search->by_row.first[row + 1] = count;
  }
}

/* Without a branch for each input: each is written, and overwritten by the next one if it is 0; at last in the slot that
   holds no event. */
static void list_task(const void *work, int64_t number) {
  const search_t *search = work;
  for (int64_t row = number * ROWS; row < least((number + 1) * ROWS, search->rows); ++row) {
    const float *inputs = search->inputs + row * search->entering;
    int64_t at = search->by_row.first[row];
    for (int64_t k = 0; k < search->entering; k += BLOCK) {
      const int64_t end = least(k + BLOCK, search->entering);
      int any = 0;
      for (int64_t i = k; i < end; ++i) any |= inputs[i] != 0;
      for (int64_t i = k; any && i < end; ++i) {
        search->by_row.place[at] = (int32_t)i;
        search->by_row.value[at] = inputs[i];
        at += inputs[i] != 0;
      }
    }
  }
}

static void count_by_input_task(const void *work, int64_t stretch) {
  const search_t *search = work;
  int64_t *counts = search->by_input.first + stretch * search->entering + 1;
  for (int64_t row = stretch * search->length; row < least((stretch + 1) * search->length, search->rows); ++row)
    for (int64_t i = search->by_row.first[row]; i < search->by_row.first[row + 1] - 1; ++i)
      ++counts[search->by_row.place[i]];
}

static void list_by_input_task(const void *work, int64_t stretch) {
  const search_t *search = work;
  const int64_t from = stretch * search->length;
  int64_t *next = malloc((size_t)search->entering * sizeof *next);
  memcpy(next, search->by_input.first + stretch * search->entering, (size_t)search->entering * sizeof *next);
  for (int64_t row = from; row < least(from + search->length, search->rows); ++row)
    for (int64_t i = search->by_row.first[row]; i < search->by_row.first[row + 1] - 1; ++i) {
      const int64_t at = next[search->by_row.place[i]]++;
      search->by_input.place[at] = (int32_t)(row - from);
      search->by_input.value[at] = search->by_row.value[i];
    }
  free(next);
}

static void find_by_row(search_t *search, int threads) {
  const int64_t tasks = (search->rows + ROWS - 1) / ROWS;
  search->by_row.first = calloc((size_t)search->rows + 1, sizeof *search->by_row.first);
  run_tasks(count_task, search, tasks, tasks, threads);
  begin_groups(&search->by_row, search->rows);
  run_tasks(list_task, search, tasks, tasks, threads);
}

static void find_by_input(search_t *search, int threads) {
  const int64_t stretches = (search->rows + search->length - 1) / search->length, groups = stretches * search->entering;
  search->by_input.first = calloc((size_t)groups + 1, sizeof *search->by_input.first);
  run_tasks(count_by_input_task, search, stretches, stretches, threads);
  begin_groups(&search->by_input, groups);
  run_tasks(list_by_input_task, search, stretches, stretches, threads);
}

/* Events of each row, and of each input in each stretch, too, if `by_input`. */
static void find_events(search_t *search, int by_input, int threads) {
  find_by_row(search, threads);
  if (by_input) find_by_input(search, threads);
}

static void forget_events(const search_t *search) {
  const events_t both[] = {search->by_row, search->by_input};
  for (int i = 0; i < 2; ++i) {
    free(both[i].first);
    free(both[i].place);
    free(both[i].value);
  }
}

typedef float line16_t __attribute__((vector_size(64), aligned(4)));

/* sums [width] = the rows of `matrix` [.., width] at the places of events, each times the value of its event. */
static inline void sum_rows(const float *matrix, int64_t width, const events_t *events, int64_t group, float *sums) {
  const int64_t end = events->first[group + 1] - 1;
  if (width == BAND) {
    line16_t a = {0}, b = {0}, c = {0}, d = {0};
    for (int64_t i = events->first[group]; i < end; ++i) {
      const line16_t *row = (const line16_t *)(matrix + (int64_t)events->place[i] * BAND);
      const float value = events->value[i];
      a += value * row[0];
      b += value * row[1];
      c += value * row[2];
      d += value * row[3];
    }
    line16_t *lines = (line16_t *)sums;
    lines[0] = a, lines[1] = b, lines[2] = c, lines[3] = d;
    return;
  }
  memset(sums, 0, (size_t)width * sizeof *sums);
  for (int64_t i = events->first[group]; i < end; ++i)
    for (int64_t j = 0; j < width; ++j) sums[j] += events->value[i] * matrix[events->place[i] * width + j];
}

/* currents [rows, neurons] = inputs [rows, entering] weight^T, from the events of rows `from` and later; rows of currents
   are `row` numbers apart. */
static void event_currents(const events_t *events, int64_t from, const float *weight, float *currents, int64_t rows,
                           int64_t entering, int64_t neurons, int64_t row) {
  float *turned = malloc((size_t)(entering * BAND) * sizeof *turned);
  for (int64_t j = 0; j < neurons; j += BAND) {
    const int64_t width = least(BAND, neurons - j);
    turn(weight + j * entering, entering, turned, width, entering);
    for (int64_t i = 0; i < rows; ++i) sum_rows(turned, width, events, from + i, currents + i * row + j);
  }
  free(turned);
}

/* by_weight [neurons, entering] = gradient^T inputs, or added to it, from the events of groups `from` and later, one for
   each input; rows of the gradient are `row` numbers apart. */
static void event_by_weight(const events_t *events, int64_t from, const float *gradient, float *by_weight, int64_t rows,
                            int64_t entering, int64_t neurons, int64_t row, bool adds) {
  float *band = malloc((size_t)(rows * BAND) * sizeof *band);
  float sums[TURNED * BAND] __attribute__((aligned(64))), turned[TURNED * BAND] __attribute__((aligned(64)));
  for (int64_t j = 0; j < neurons; j += BAND) {
    const int64_t width = least(BAND, neurons - j);
    for (int64_t i = 0; i < rows; ++i) memcpy(band + i * width, gradient + i * row + j, (size_t)width * sizeof *band);
    for (int64_t k = 0; k < entering; k += TURNED) {
      const int64_t count = least(TURNED, entering - k);
      for (int64_t i = 0; i < count; ++i) sum_rows(band, width, events, from + k + i, sums + i * width);
      turn(sums, width, turned, count, width);
      for (int64_t n = 0; n < width; ++n) {
        float *to = by_weight + (j + n) * entering + k;
        for (int64_t i = 0; i < count; ++i) to[i] = adds ? to[i] + turned[n * count + i] : turned[n * count + i];
      }
    }
  }
  free(band);
}
#endif
