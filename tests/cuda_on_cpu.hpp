/* What lif_cuda.cu takes from CUDA, for g++: the same text, one thread at a time. lif_cuda.cu is included after it, any
   number of times, each time in another namespace and with other macros. */
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)

struct Place {
  unsigned int x;
};
static thread_local Place blockIdx, threadIdx;

/* All threads of all blocks, one after the other. A kernel's own parameters say what lies behind the pointers, as on a
   GPU: a launch with other types gives it other numbers. */
template <typename... Parameter, std::size_t... number>
void launch(void (*kernel)(Parameter...), unsigned int blocks, unsigned int threads, void **arguments,
            std::index_sequence<number...>) {
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
      kernel(*static_cast<Parameter *>(arguments[number])...);
}
template <typename... Parameter>
void launch(void (*kernel)(Parameter...), unsigned int blocks, unsigned int threads, void **arguments) {
  launch(kernel, blocks, threads, arguments, std::index_sequence_for<Parameter...>());
}
#define LAUNCH(space, kernel) \
  extern "C" void launch_##kernel(unsigned int blocks, unsigned int threads, void **arguments) { \
    launch(space::kernel, blocks, threads, arguments); \
  }

/* Where kernels may read rows from; with no such place named, anywhere. Reads elsewhere give zeros and are counted. */
struct Range {
  std::uintptr_t from, to;
};
static std::vector<Range> readable;
static int stray_reads = 0;
extern "C" void may_read(std::uintptr_t from, std::uintptr_t to) { readable.push_back({from, to}); }
extern "C" int strays() { return stray_reads; }
static inline bool stray(const void *place, std::size_t bytes) {
  const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(place);
  for (const Range &range : readable)
    if (range.from <= from && from + bytes <= range.to) return false;
  return !readable.empty();
}

/* As wide and as strict as on a GPU: an address that is no multiple of the word's size ends the process. */
struct alignas(8) uint2 {
  unsigned int x, y;
};
struct alignas(16) uint4 {
  unsigned int x, y, z, w;
};
template <typename T> T aligned(const T *place) {
  if (reinterpret_cast<std::uintptr_t>(place) % sizeof(T)) __builtin_trap();
  return *place;
}
template <typename T> T __ldcs(const T *place) {
  if (!stray(place, sizeof(T))) return aligned(place);
  ++stray_reads;
  return T();
}
template <typename T> void __stcs(T *place, T value) {
  aligned(place);
  *place = value;
}

static inline float __uint_as_float(unsigned int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
static inline int __float_as_int(float value) {
  int bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
#define __expf expf

/* Stand for the conversions written in PTX: to the nearest, ties to even. */
static inline unsigned short to_bfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
static inline float from_float16(unsigned short bits) {
  _Float16 value;
  std::memcpy(&value, &bits, sizeof value);
  return (float)value;
}
static inline unsigned short to_float16(float value) {
  const _Float16 half = (_Float16)value;
  unsigned short bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}
