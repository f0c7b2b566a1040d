/* The layer's forward and backward pass with a clock around them: benchmarks/limit.py. */
#include <stdint.h>
#include <time.h>

typedef void (*pass_t)(const void *);
static pass_t forward, backward;
static int64_t spent;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void timed(pass_t pass, const void *arguments) {
  int64_t began = now_ns();
  pass(arguments);
  spent += now_ns() - began;
}

void timed_forward(const void *arguments) { timed(forward, arguments); }
void timed_backward(const void *arguments) { timed(backward, arguments); }

void use(pass_t a_forward, pass_t a_backward) {
  forward = a_forward;
  backward = a_backward;
}

/* Nanoseconds since the last call. */
int64_t spent_ns(void) {
  int64_t ns = spent;
  spent = 0;
  return ns;
}
