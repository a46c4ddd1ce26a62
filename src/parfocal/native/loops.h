/* What the loops and those who start them share. */

#ifndef PARFOCAL_LOOPS_H
#define PARFOCAL_LOOPS_H

#include "sharing.h"

#include <stdint.h>

enum { LANES = 16, ROWS = 64, MOST_COLUMNS = 1024, TILES = 16 /* of a block */ };

/* Of two numbers the second if the first is NaN. */
INLINE double least(double a, double b) { return a < b ? a : b; }
INLINE double most(double a, double b) { return a > b ? a : b; }

/* float32 numbers one after the other, or bfloat16 ones: the upper halves of float32 numbers */
typedef struct {
    const void *values;
    int halves;
} Numbers;

typedef struct {
    double total, absolute, square, cube, minimum, maximum;
} Sums;

/* The tables of projection.py: flips[tile][row] has one bit for every column, set where an element changes
   its sign; a tile is turned by angles[tile] columns. They are the same for every block of TILES tiles,
   which as a whole is turned by turns[block] columns and multiplied by signs[block]. A small array has
   ``elements`` instead, a sign for every number, and each of its rows is turned by angles[row] columns. */
typedef struct {
    const uint16_t *flips;
    const int64_t *angles, *turns;
    const double *signs;
    const float *elements;
} Projection;

typedef struct {
    Numbers from;
    int64_t count;
    float scale; /* powers are taken of the numbers times this, a power of two */
    int columns;
    const Projection *by; /* NULL: none */
    int64_t size;         /* of a piece, whole blocks */
    Sums *sums;           /* of every piece */
    double *buckets;      /* of every piece, ``columns`` each */
} Moments;

typedef struct {
    double maximum, minimum, absolute, square, square_x, square_y, product;
    double minimum_x, maximum_x, minimum_y, maximum_y, relative, mismatched, position;
} Difference;

typedef struct {
    double peak, square, reference_peak, reference_square;
    double over; /* how many differences may exceed the tolerance; 0: none does */
} Apart;

typedef struct {
    double atol, rtol;
    float low_atol, low_rtol, high_atol, high_rtol; /* slightly less and slightly more, for float32 */
} Tolerance;

typedef struct {
    Numbers x, y;
    int64_t count, size; /* of all, and of a piece */
    void *found;         /* of every piece: Difference or Apart */
    Tolerance allowed;
    double known; /* the place of the largest difference is looked for if it exceeds this */
} Both;

/* The loops over one piece, compiled for one kind of processor. */
typedef struct {
    Piece moments, difference, apart;
} Pieces;

#endif
