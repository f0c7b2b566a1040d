/* Tasks that threads share: each thread takes the next task, and the caller takes part. The tasks of a phase begin when
   all tasks of the phases before are done.

   The threads are those of OpenMP, in a parallel region. torch's operations use the same ones. After a region such a
   thread spins for milliseconds, and would take the core from a helper.

   A region ends when all of its threads have arrived. If another process keeps a core busy, a thread may arrive
   milliseconds late, even if nothing is left to do. After such a delay, calls have helpers of their own for a while.
   Such a call ends when all tasks are done: the caller does the tasks that a late helper does not take, and waits only
   for a helper that has taken one.

   A thread that loses its core while it holds a task is milliseconds late. If the caller waits longer than it works, a
   team is slower than the caller alone. So the caller then works alone for a while. Each time that a new attempt ends
   the same way, the while is longer.

   A helper looks for the next call for a while, and then sleeps. If another thread, perhaps the caller, waits for its
   core meanwhile, helpers sleep at once after each call for a while.

   A second caller at the same time does all tasks alone. A child after a fork has helpers only: a region would wait for
   ever for OpenMP's threads, which are gone. */
#ifndef TEAM_H
#define TEAM_H
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { MOST_HELPERS = 255 };
enum { YIELD_AFTER = 2000 };  /* looks for the end of tasks before a thread lets others run */
enum { SLEEP_AFTER = 20000 }; /* looks of a helper for the next call before it sleeps: a fraction of a millisecond */
enum { YIELD_EVERY = 64 };    /* looks of a helper before it lets others run: one or two microseconds */
enum { SHARED_NS = 400000 };  /* a yield that takes longer gave the core to another thread, not to an interrupt */
enum { LATE_NS = 200000 };    /* less than the kernel lets another process run; more than a cache or an interrupt takes */
enum { AT_FIRST = 4 };        /* times the delay, until a new attempt */
static const int64_t LONGEST_NS = 100000000;
static const int64_t APART_NS = 200000000, APART_LONGEST_NS = 5000000000; /* a region's delay is long beside a call */

typedef void (*task_t)(const void *work, int64_t number);

/* A pause after a delay: when it ends, and how long it is. */
typedef struct {
  _Atomic int64_t until, ns;
} pause_t;

static struct {
  pthread_mutex_t called, asleep;
  pthread_cond_t awake;
  pid_t process; /* the last one that had a call, and before the first call the one that imported this code */
  int is_child;  /* whether that was another process at some time */
  int started;   /* helpers, in this process */
  task_t run;
  const void *work;
  int64_t phase; /* tasks of a phase */
  int64_t count; /* tasks of the call */
  pause_t apart;   /* calls have helpers instead of OpenMP's threads */
  pause_t alone;   /* the caller works without other threads */
  pause_t crowded; /* helpers without a task sleep */
  _Atomic int helpers;
  _Atomic int64_t done;
  _Atomic uint64_t left; /* the number of the call << 32 | its tasks that no thread has taken */
} team = {.called = PTHREAD_MUTEX_INITIALIZER, .asleep = PTHREAD_MUTEX_INITIALIZER, .awake = PTHREAD_COND_INITIALIZER};

static inline void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

static inline int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

/* A pause after a delay that ended at `now`: `first` long, or twice as long as the last one if that ended a short time
   ago. */
static void pause_after(pause_t *pause, int64_t delay, int64_t now, int64_t first, int64_t longest) {
  int64_t last = pause->ns, again = now - delay - pause->until < last;
  int64_t ns = again ? 2 * last : first;
  if (ns > longest) ns = longest;
  pause->ns = ns;
  pause->until = now + ns;
}

static inline uint32_t call_now(void) { return (uint32_t)(atomic_load_explicit(&team.left, memory_order_acquire) >> 32); }

static void wait_until_done(int64_t tasks) {
  for (int looks = 0; atomic_load_explicit(&team.done, memory_order_acquire) < tasks;)
    if (++looks < YIELD_AFTER) pause_briefly();
    else sched_yield();
}

/* Take tasks of a call until none is left. A call ends after its last task, so a thread that holds a task reads the
   fields of this call; before it has one, it reads `left` only, which a later call may have changed. */
static void take_tasks(uint32_t call) {
  uint64_t left = atomic_load_explicit(&team.left, memory_order_acquire);
  while ((uint32_t)(left >> 32) == call && (uint32_t)left) {
    if (!atomic_compare_exchange_weak_explicit(&team.left, &left, left - 1, memory_order_acq_rel, memory_order_acquire))
      continue;
    int64_t number = team.count - (uint32_t)left;
    wait_until_done(number / team.phase * team.phase);
    team.run(team.work, number);
    atomic_fetch_add_explicit(&team.done, 1, memory_order_acq_rel);
    left = atomic_load_explicit(&team.left, memory_order_acquire);
  }
}

/* Let another thread run if one waits for this core; whether one did, here or at another helper a short time ago. */
static int is_crowded(void) {
  int64_t before = now_ns();
  if (before < team.crowded.until) return 1;
  sched_yield();
  int64_t after = now_ns();
  if (after - before < SHARED_NS) return 0;
  pause_after(&team.crowded, after - before, after, AT_FIRST * (after - before), LONGEST_NS);
  return 1;
}

/* Look for a call after `seen` for a while. */
static void look_for_call(uint32_t seen) {
  for (int looks = 0; call_now() == seen && looks < SLEEP_AFTER; ++looks)
    if (looks % YIELD_EVERY) pause_briefly();
    else if (is_crowded()) return;
}

static void *helper(void *rank) {
  for (uint32_t seen = 0;;) {
    look_for_call(seen);
    if (call_now() == seen) {
      pthread_mutex_lock(&team.asleep);
      while (call_now() == seen) pthread_cond_wait(&team.awake, &team.asleep);
      pthread_mutex_unlock(&team.asleep);
    }
    seen = call_now();
    if ((intptr_t)rank < atomic_load_explicit(&team.helpers, memory_order_relaxed)) take_tasks(seen);
  }
  return 0;
}

/* Start helpers that are missing, as many as the system allows. */
static void start_helpers(int wanted) {
  pthread_attr_t detached;
  pthread_t thread;
  if (team.started >= wanted || pthread_attr_init(&detached)) return;
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  while (team.started < wanted && !pthread_create(&thread, &detached, helper, (void *)(intptr_t)team.started)) ++team.started;
  pthread_attr_destroy(&detached);
}

/* After a fork all other threads are gone, and locks of other threads stay locked. */
static void notice_fork(void) {
  if (team.process == getpid()) return;
  if (team.process) {
    team.is_child = 1;
    pthread_mutex_init(&team.called, 0);
    pthread_mutex_init(&team.asleep, 0);
    pthread_cond_init(&team.awake, 0);
    team.started = 0;
  }
  team.process = getpid();
}

/* A call whose caller began, had no task left, and had waited for the tasks of other threads, at these times. */
static void note_delay(int64_t began, int64_t worked, int64_t ended) {
  int64_t delay = ended - worked;
  if (delay >= LATE_NS && delay >= worked - began)
    pause_after(&team.alone, delay, ended, AT_FIRST * delay, LONGEST_NS);
}

/* A parallel region whose tasks were done, and which ended, at these times. */
static void note_late_region(int64_t done, int64_t ended) {
  if (ended - done >= LATE_NS) pause_after(&team.apart, ended - done, ended, APART_NS, APART_LONGEST_NS);
}

static void run_alone(task_t run, const void *work, int64_t count) {
  for (int64_t number = 0; number < count; ++number) run(work, number);
}

/* Begin a call, which so many helpers serve; its number. */
static uint32_t begin_call(int helpers) {
  atomic_store_explicit(&team.helpers, helpers, memory_order_relaxed);
  atomic_store_explicit(&team.done, 0, memory_order_relaxed);
  uint32_t call = call_now() + 1;
  atomic_store_explicit(&team.left, (uint64_t)call << 32 | (uint32_t)team.count, memory_order_release);
  return call;
}

static void run_in_region(int64_t began) {
  const uint32_t call = begin_call(0);
  int64_t worked = 0, done = 0;
#pragma omp parallel
  {
    take_tasks(call);
    if (!omp_get_thread_num()) {
      worked = now_ns();
      wait_until_done(team.count);
      done = now_ns();
    }
  }
  note_delay(began, worked, done);
  note_late_region(done, now_ns());
}

static void run_with_helpers(int helpers, int64_t began) {
  start_helpers(helpers);
  const uint32_t call = begin_call(helpers);
  pthread_mutex_lock(&team.asleep);
  pthread_cond_broadcast(&team.awake);
  pthread_mutex_unlock(&team.asleep);
  take_tasks(call);
  const int64_t worked = now_ns();
  wait_until_done(team.count);
  note_delay(began, worked, now_ns());
}

/* Run tasks 0 to `count` - 1 of some work on so many threads at most. */
static void run_tasks(task_t run, const void *work, int64_t count, int64_t phase, int threads) {
  notice_fork();
  if (threads < 2 || phase < 2 || count > UINT32_MAX || pthread_mutex_trylock(&team.called)) {
    run_alone(run, work, count);
    return;
  }
  int64_t began = now_ns();
  if (began < team.alone.until) {
    run_alone(run, work, count);
    pthread_mutex_unlock(&team.called);
    return;
  }
  /* A region of fewer threads than torch's would end the other ones of OpenMP's. */
  const int in_region = threads == omp_get_max_threads() && !team.is_child && began >= team.apart.until;
  team.run = run;
  team.work = work;
  team.phase = phase;
  team.count = count;
  if (in_region) run_in_region(began);
  else run_with_helpers(threads - 1 < MOST_HELPERS ? threads - 1 : MOST_HELPERS, began);
  pthread_mutex_unlock(&team.called);
}
#endif
