/* A CUDA driver with one device and no GPU, for what drives it from Python: kernels are handed to callbacks.

   It has the functions that cuda-core calls on its way from a cubin to a launch. It refuses what the driver refuses: a
   thread without a context loads and launches nothing, and only ELF files are loaded. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NOT_FOUND = 500 };

typedef struct {
  int module;
  char name[64];
} Function;
typedef struct {
  unsigned grid[3], block[3], shared_bytes;
  void *stream, *attributes;
  unsigned attribute_count;
} LaunchConfig;

/* Gives a module's code a number, or -1. */
typedef int Load(const void *code);
/* Runs a function of the module of this number, and returns the driver's error. */
typedef int Run(int module, const char *name, const unsigned *grid, const unsigned *block, void *stream,
                void **arguments);

static Load *load;
static Run *run;
static __thread void *current;
static void *const context = (void *)0xc0;

void stub_call(Load *on_load, Run *on_launch) { load = on_load, run = on_launch; }

static int cuInit(unsigned flags) { return SUCCESS; }
static int cuDriverGetVersion(int *version) { return *version = 13000, SUCCESS; }
static int cuDeviceGetCount(int *count) { return *count = 1, SUCCESS; }
static int cuDevicePrimaryCtxRetain(void **retained, int device) { return *retained = context, SUCCESS; }
static int cuDevicePrimaryCtxRelease(int device) { return SUCCESS; }
static int cuCtxSetCurrent(void *wanted) { return current = wanted, SUCCESS; }
static int cuCtxGetCurrent(void **held) { return *held = current, SUCCESS; }

static int cuLibraryLoadData(void **library, const void *code, void *jit_options, void *jit_values, unsigned jit_count,
                             void *options, void *values, unsigned count) {
  if (!current) return INVALID_CONTEXT;
  if (memcmp(code, "\177ELF", 4)) return INVALID_IMAGE;
  const int module = load(code);
  return *library = (void *)(intptr_t)(module + 1), module < 0 ? INVALID_IMAGE : SUCCESS;
}
static int cuLibraryUnload(void *library) { return SUCCESS; }
static int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  Function *function = calloc(1, sizeof *function);
  function->module = (int)(intptr_t)library - 1;
  strncpy(function->name, name, sizeof function->name - 1);
  return *kernel = function, SUCCESS;
}
static int cuLaunchKernelEx(const LaunchConfig *config, void *function, void **arguments, void **extra) {
  if (!current) return INVALID_CONTEXT;
  const Function *wanted = function;
  return run(wanted->module, wanted->name, config->grid, config->block, config->stream, arguments);
}
static int cuGetErrorName(int error, const char **text) {
  static __thread char name[32];
  snprintf(name, sizeof name, "error %d", error);
  return *text = name, SUCCESS;
}
static int cuGetErrorString(int error, const char **text) { return *text = "refused by the stub driver", SUCCESS; }

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status);

#define ENTRY(function) {#function, (void *)function}
static const struct {
  const char *name;
  void *function;
} functions[] = {
    ENTRY(cuInit),
    ENTRY(cuDriverGetVersion),
    ENTRY(cuDeviceGetCount),
    ENTRY(cuDevicePrimaryCtxRetain),
    ENTRY(cuDevicePrimaryCtxRelease),
    ENTRY(cuCtxSetCurrent),
    ENTRY(cuCtxGetCurrent),
    ENTRY(cuLibraryLoadData),
    ENTRY(cuLibraryUnload),
    ENTRY(cuLibraryGetKernel),
    ENTRY(cuLaunchKernelEx),
    ENTRY(cuGetErrorName),
    ENTRY(cuGetErrorString),
    {"cuGetProcAddress", (void *)cuGetProcAddress_v2},
};

/* The driver's own door to its functions; cuda-bindings opens no other. */
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
  *function = NULL;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
    if (!strcmp(name, functions[i].name)) *function = functions[i].function;
  if (status) *status = !*function;
  return *function ? SUCCESS : NOT_FOUND;
}
