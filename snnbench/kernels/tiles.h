/* The three products of the layer from products of tiles: oneDNN's micro-kernel, which torch's library has.

   On AMD's processors, torch's BLAS (MKL) leaves AVX-512 unused, and oneDNN does not. Its micro-kernel takes
   matrices by rows and transposes none. So tiles of the weight and of the gradient are transposed here, while they are
   in the cache, and no product needs memory of its own. */
#ifndef TILES_H
#define TILES_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* c [m, n] = a [m, k] b [k, n], or added to c; rows are `row_a`, `row_b` and `row_c` numbers apart. */
typedef void (*tile_t)(int64_t m, int64_t n, int64_t k, int64_t row_a, int64_t row_b, int64_t row_c, bool adds,
                       const float *a, const float *b, float *c, bool packed);

enum { TILE_ROWS = 64, TILE_COLUMNS = 64, TILE_DEPTH = 256, TILE_WIDTH = 512, TILE_BAND = 256, SQUARE = 16 };
enum { ALIASED = 1024 };   /* numbers: with a multiple of 4 KiB between rows, all rows fall into the same sets of a cache */
enum { LONG_DEPTH = 512 }; /* of a sum of rows there: it passes over the weight's gradient, which no cache holds */

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector) /* of GCC 12 and clang */
#define SHUFFLES 1
#endif
#endif

#ifdef SHUFFLES
typedef float line_t __attribute__((vector_size(64), aligned(4)));

#define LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* The numbers of the upper and the lower half of the rows in turn. */
#define INTERLEAVE(rows, to)                         \
  for (int i = 0; i < SQUARE / 2; ++i) {             \
    to[2 * i] = LOW(rows[i], rows[i + SQUARE / 2]);      \
    to[2 * i + 1] = HIGH(rows[i], rows[i + SQUARE / 2]); \
  }

/* to [16, 16] = from [16, 16] transposed. Each step moves one of the four bits of a row's number to the column's. */
static inline void turn_square(const float *restrict from, int64_t row_from, float *restrict to, int64_t row_to) {
  line_t rows[SQUARE], mixed[SQUARE];
  for (int i = 0; i < SQUARE; ++i) rows[i] = *(const line_t *)(from + i * row_from);
  INTERLEAVE(rows, mixed)
  INTERLEAVE(mixed, rows)
  INTERLEAVE(rows, mixed)
  INTERLEAVE(mixed, rows)
  for (int i = 0; i < SQUARE; ++i) *(line_t *)(to + i * row_to) = rows[i];
}
#endif

/* to [columns, rows] = from [rows, columns] transposed, in squares of a cache line's width. */
static void turn(const float *restrict from, int64_t row_from, float *restrict to, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i += SQUARE)
    for (int64_t j = 0; j < columns; j += SQUARE) {
#ifdef SHUFFLES
      if (i + SQUARE <= rows && j + SQUARE <= columns) {
        turn_square(from + i * row_from + j, row_from, to + j * rows + i, rows);
        continue;
      }
#endif
      for (int64_t b = j; b < least(j + SQUARE, columns); ++b)
        for (int64_t a = i; a < least(i + SQUARE, rows); ++a) to[b * rows + a] = from[a * row_from + b];
    }
}

/* currents [rows, neurons] = inputs [rows, entering] weight^T; rows of currents are `row` numbers apart. */
static void tiled_currents(tile_t tile, const float *inputs, const float *weight, float *currents, int64_t rows,
                           int64_t entering, int64_t neurons, int64_t row) {
  float turned[TILE_DEPTH * TILE_COLUMNS] __attribute__((aligned(64)));
  for (int64_t j = 0; j < neurons; j += TILE_COLUMNS)
    for (int64_t k = 0; k < entering; k += TILE_DEPTH) {
      const int64_t width = least(TILE_COLUMNS, neurons - j), depth = least(TILE_DEPTH, entering - k);
      turn(weight + j * entering + k, entering, turned, width, depth);
      for (int64_t i = 0; i < rows; i += TILE_ROWS)
        tile(least(TILE_ROWS, rows - i), width, depth, entering, width, row, k > 0, inputs + i * entering + k, turned,
             currents + i * row + j, false);
    }
}

/* A block [depth, width] of a matrix by rows: the matrix itself, or a copy where all rows of the block would fall into
   the same sets of a cache. */
typedef struct {
  const float *at;
  int64_t row;
} block_t;

static block_t block_of(const float *matrix, int64_t row, int64_t depth, int64_t width, float *copy) {
  if (row % ALIASED) return (block_t){matrix, row};
  for (int64_t i = 0; i < depth; ++i) memcpy(copy + i * width, matrix + i * row, (size_t)width * sizeof(float));
  return (block_t){copy, width};
}

/* Columns of a block, of a matrix whose rows have so many numbers. */
static int64_t width_of(int64_t row) { return row % ALIASED ? TILE_WIDTH : TILE_COLUMNS; }

/* by_weight [neurons, entering] = gradient^T inputs, or added to it; rows of the gradient are `row` numbers apart. */
static void tiled_by_weight(tile_t tile, const float *gradient, const float *inputs, float *by_weight, int64_t rows,
                            int64_t entering, int64_t neurons, int64_t row, bool adds) {
  float turned[TILE_BAND * TILE_DEPTH] __attribute__((aligned(64)));
  float copy[LONG_DEPTH * TILE_COLUMNS] __attribute__((aligned(64)));
  const int64_t widest = width_of(entering), deepest = widest == TILE_WIDTH ? TILE_DEPTH : LONG_DEPTH;
  const int64_t tallest = TILE_BAND * TILE_DEPTH / deepest;
  for (int64_t i = 0; i < rows; i += deepest)
    for (int64_t j = 0; j < neurons; j += tallest) {
      const int64_t band = least(tallest, neurons - j), depth = least(deepest, rows - i);
      turn(gradient + i * row + j, row, turned, depth, band);
      for (int64_t k = 0; k < entering; k += widest) {
        const int64_t width = least(widest, entering - k);
        const block_t block = block_of(inputs + i * entering + k, entering, depth, width, copy);
        for (int64_t h = 0; h < band; h += TILE_ROWS)
          tile(least(TILE_ROWS, band - h), width, depth, depth, block.row, entering, adds || i > 0, turned + h * depth,
               block.at, by_weight + (j + h) * entering + k, false);
      }
    }
}

/* by_input [rows, entering] = gradient [rows, neurons] weight; rows of the weight and of by_input are `row` numbers
   apart. */
static void tiled_by_input(tile_t tile, const float *gradient, const float *weight, float *by_input, int64_t rows,
                           int64_t entering, int64_t neurons, int64_t row) {
  float copy[TILE_DEPTH * TILE_COLUMNS] __attribute__((aligned(64)));
  const int64_t widest = width_of(row);
  for (int64_t k = 0; k < entering; k += widest)
    for (int64_t j = 0; j < neurons; j += TILE_DEPTH) {
      const int64_t width = least(widest, entering - k), depth = least(TILE_DEPTH, neurons - j);
      const block_t block = block_of(weight + j * row + k, row, depth, width, copy);
      for (int64_t i = 0; i < rows; i += TILE_ROWS)
        tile(least(TILE_ROWS, rows - i), width, depth, neurons, block.row, row, j > 0, gradient + i * neurons + j,
             block.at, by_input + i * row + k, false);
    }
}
#endif
