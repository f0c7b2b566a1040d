/* What the operators of linear_cpu.cpp and the work of linear_cpu.c exchange in a pass. Pointers may be
   absent where linear_cpu.c says so. */
#ifndef SNNBENCH_LINEAR_CPU_H
#define SNNBENCH_LINEAR_CPU_H

#include <stdint.h>

/* Time steps, batch, inputs, neurons, time steps of a stretch, threads, and whether products with the inputs skip those
   that are 0. */
typedef struct {
  int64_t steps, batch, inputs, neurons, length, threads, sparse;
  double beta, threshold, slope;
} sizes_t;

typedef struct {
  sizes_t sizes;
  const void *inputs, *weight, *bias, *start;
  void *potential, *spikes, *kept, *states, *scratch;
} forward_pass_t;

typedef struct {
  sizes_t sizes;
  const void *inputs, *weight, *bias, *start, *cotangent, *kept, *states, *carried;
  void *again, *first, *gradient, *by_input, *by_weight, *by_bias, *by_beta, *by_threshold;
} backward_pass_t;

/* What passes of the same sizes share. Python writes it: linear_cpu.py. */
typedef struct {
  void (*forward)(const forward_pass_t *);
  void (*backward)(const backward_pass_t *);
  sizes_t sizes;
  int64_t keep;    /* one of KEEP_... */
  int64_t is_half; /* whether distances are kept in bfloat16 */
} plan_t;

enum {
  KEEP_NONE,      /* for inference */
  KEEP_DISTANCES, /* of every step */
  KEEP_STATES     /* the potential before each stretch */
};

#endif
