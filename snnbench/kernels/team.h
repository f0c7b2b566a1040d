/* Tasks that threads share: each thread takes the next task, and the caller takes part.

   A parallel region of OpenMP ends when all of its threads have arrived. If another process keeps a core busy, a thread
   may arrive milliseconds late, even if nothing is left to do. Here a call ends when all tasks are done, so the caller
   does the tasks that a late thread does not take, and waits only for a thread that has taken one. The tasks of a phase
   begin when all tasks of the phases before are done.

   A helper that loses its core while it holds a task is milliseconds late. If the caller waits longer than it works, a
   team is slower than the caller alone. So the caller then works alone for a while, and for longer each time that a new
   attempt ends the same way.

   A helper looks for the next call for a while, and then sleeps. If another thread, perhaps the caller, waits for its
   core meanwhile, helpers sleep at once after each call for a while.

   A second caller at the same time, and a child after a fork, do all tasks alone. */
#ifndef TEAM_H
#define TEAM_H
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
enum { LONGEST_NS = 100000000 };

typedef void (*task_t)(const void *work, int64_t number);

/* A pause after a delay: when it ends, and how long it is. */
typedef struct {
  _Atomic int64_t until, ns;
} pause_t;

static struct {
  pthread_mutex_t called, asleep;
  pthread_cond_t awake;
  pid_t process;
  int started; /* helpers, in this process */
  task_t run;
  const void *work;
  int64_t phase; /* tasks of a phase */
  int64_t count; /* tasks of the call */
  pause_t alone;   /* the caller works without helpers */
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

/* A pause after a delay that ended at `now`; it is twice as long as the last one if that ended a short time ago. */
static void pause_after(pause_t *pause, int64_t delay, int64_t now) {
  int64_t last = pause->ns, again = now - delay - pause->until < last;
  int64_t ns = again ? 2 * last : AT_FIRST * delay;
  if (ns > LONGEST_NS) ns = LONGEST_NS;
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
  pause_after(&team.crowded, after - before, after);
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

/* After a fork the helpers are gone, and locks of other threads stay locked. */
static void notice_fork(void) {
  if (team.process == getpid()) return;
  if (team.process) {
    pthread_mutex_init(&team.called, 0);
    pthread_mutex_init(&team.asleep, 0);
    pthread_cond_init(&team.awake, 0);
    team.started = 0;
  }
  team.process = getpid();
}

/* The end of a call whose caller began, had no task left, and had waited for the helpers, at these times. */
static void note_delay(int64_t began, int64_t worked, int64_t ended) {
  int64_t delay = ended - worked;
  if (delay >= LATE_NS && delay >= worked - began) pause_after(&team.alone, delay, ended);
}

static void run_alone(task_t run, const void *work, int64_t count) {
  for (int64_t number = 0; number < count; ++number) run(work, number);
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
  int helpers = threads - 1 < MOST_HELPERS ? threads - 1 : MOST_HELPERS;
  start_helpers(helpers);
  team.run = run;
  team.work = work;
  team.phase = phase;
  team.count = count;
  atomic_store_explicit(&team.helpers, helpers, memory_order_relaxed);
  atomic_store_explicit(&team.done, 0, memory_order_relaxed);
  uint32_t call = call_now() + 1;
  atomic_store_explicit(&team.left, (uint64_t)call << 32 | (uint32_t)count, memory_order_release);
  pthread_mutex_lock(&team.asleep);
  pthread_cond_broadcast(&team.awake);
  pthread_mutex_unlock(&team.asleep);
  take_tasks(call);
  int64_t worked = now_ns();
  wait_until_done(count);
  note_delay(began, worked, now_ns());
  pthread_mutex_unlock(&team.called);
}
#endif
