/* One pass over many numbers, in one loop.

   What NumPy does in seven passes over a block (range, four sums of powers, projection) is limited
   by the caches; fused, it is limited by memory alone. Sums run in float32 over FLUSH additions a
   lane and in double beyond. An array is cut into pieces by its size alone, and what the pieces give is
   put together in their order: a result does not depend on how many threads there are. */

#include "sharing.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, ROWS = 64, MOST_COLUMNS = 1024, STRIP = 4, FLUSH = 64, AHEAD = 4096 };
enum { FEW = 32, FARTHEST = 100 /* exponents up to this are far from the ends of float32 */, ANY = INT_MIN };
enum { TILES = 16 /* of a block */, MOST_PIECES = 64, PAIRS = 1 << 18 /* of a piece, at least */ };

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Bits __attribute__((vector_size(4 * LANES)));

/* Asks for what comes next while this is computed: the processor's own foresight ends at every page. */
INLINE void look_ahead(const void *from, int64_t bytes) {
    for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch((const char *)from + line + AHEAD);
}

INLINE Floats load(const float *from) {
    Floats value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE Floats all(float value) { return value - (Floats){0}; }

INLINE Floats chosen(Bits where, Floats yes, Floats no) {
    return (Floats)(((Bits)yes & where) | ((Bits)no & ~where));
}

INLINE Floats magnitude(Floats value) { return (Floats)((Bits)value & 0x7fffffff); }

INLINE Floats smaller(Floats a, Floats b) { return chosen(a < b, a, b); }

INLINE Floats larger(Floats a, Floats b) { return chosen(a > b, a, b); }

INLINE double sum(Floats value) {
    double total = 0;
    for (int lane = 0; lane < LANES; lane++) total += value[lane];
    return total;
}

INLINE float smallest(Floats value) {
    float found = value[0];
    for (int lane = 1; lane < LANES; lane++) found = value[lane] < found ? value[lane] : found;
    return found;
}

INLINE float largest(Floats value) { return -smallest(-value); }

INLINE double least(double a, double b) { return a < b ? a : b; }

INLINE double most(double a, double b) { return a > b ? a : b; }

/* How many numbers make a piece: whole blocks of ``length``, as few as keep the pieces few. */
INLINE int64_t piece_length(int64_t count, int64_t length) {
    const int64_t blocks = (count + length * MOST_PIECES - 1) / (length * MOST_PIECES);
    return length * (blocks > 0 ? blocks : 1);
}

INLINE int64_t pieces_of(int64_t count, int64_t size) { return count > size ? (count + size - 1) / size : 1; }

/* ---- moments and projection ---- */

typedef struct {
    double total, absolute, square, cube, minimum, maximum;
} Sums;

typedef struct {
    Floats total, absolute, square, cube, minimum, maximum;
    int additions;
} Lanes;

INLINE void flush_moments(Lanes *lanes, Sums *sums) {
    sums->total += sum(lanes->total);
    sums->absolute += sum(lanes->absolute);
    sums->square += sum(lanes->square);
    sums->cube += sum(lanes->cube);
    lanes->total = lanes->absolute = lanes->square = lanes->cube = all(0.0f);
    lanes->additions = 0;
}

/* One row of a tile; a last, incomplete vector counts number by number. Powers are taken of the
   numbers times ``scale``, a power of two. */
INLINE void add_row(Lanes *lanes, Sums *sums, const float *row, int count, float scale) {
    int place = 0;
    for (; place + LANES <= count; place += LANES) {
        Floats value = load(row + place), scaled = value * scale, square = scaled * scaled;
        lanes->total += value;
        lanes->absolute += magnitude(scaled);
        lanes->square += square;
        lanes->cube += square * scaled;
        lanes->minimum = smaller(value, lanes->minimum);
        lanes->maximum = larger(value, lanes->maximum);
    }
    lanes->additions += count / LANES;
    if (lanes->additions >= FLUSH) flush_moments(lanes, sums);
    for (; place < count; place++) {
        const double value = row[place], scaled = value * scale;
        sums->total += value;
        sums->absolute += scaled < 0 ? -scaled : scaled;
        sums->square += scaled * scaled;
        sums->cube += scaled * scaled * scaled;
        sums->minimum = value < sums->minimum ? value : sums->minimum;
        sums->maximum = value > sums->maximum ? value : sums->maximum;
    }
}

/* A row of float32, in place if it is whole, else filled up with zeros; a bfloat16 is the upper
   half of a float32. */
INLINE const float *read_row(const void *values, int halves, int64_t start, int count, int columns,
                             float *buffer) {
    const int64_t size = halves ? 2 : 4;
    look_ahead((const char *)values + start * size, count * size);
    if (!halves && count == columns) return (const float *)values + start;
    if (halves) {
        const uint16_t *from = (const uint16_t *)values + start;
        for (int place = 0; place < count; place++) {
            uint32_t bits = (uint32_t)from[place] << 16;
            memcpy(buffer + place, &bits, sizeof bits);
        }
    } else {
        memcpy(buffer, (const float *)values + start, (size_t)count * sizeof(float));
    }
    for (int place = count; place < columns; place++) buffer[place] = 0.0f;
    return buffer;
}

/* Adds up ``vectors`` neighbouring vectors of every row of a tile, with signs. */
INLINE void add_strip(float *sums, const float *const *source, const uint16_t *flips, int rows, int columns,
                      int vectors) {
    const Bits lane = {1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                       1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
    Floats total[STRIP] = {{0}};
    for (int row = 0; row < rows; row++)
        for (int each = 0; each < vectors; each++) {
            const Bits flip = ((lane & (int32_t)flips[row * (columns / LANES) + each]) != 0) & INT32_MIN;
            total[each] += (Floats)((Bits)load(source[row] + each * LANES) ^ flip);
        }
    memcpy(sums, total, (size_t)vectors * sizeof(Floats));
}

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

INLINE void add_turned(double *sums, const float *values, int columns, int64_t turn, double sign) {
    for (int column = 0; column < columns - turn; column++) sums[column] += sign * values[column + turn];
    for (int column = columns - (int)turn; column < columns; column++)
        sums[column] += sign * values[column + turn - columns];
}

INLINE void project_tile(const Projection *by, int64_t tile, const float *const *source, int rows, int columns,
                         double *buckets) {
    float mixed[MOST_COLUMNS];
    const float *shifted[ROWS];
    const int64_t place = tile % TILES, block = tile / TILES;
    const uint16_t *flips = by->flips + place * ROWS * (columns / LANES);
    for (int column = 0; column < columns; column += STRIP * LANES) {
        const int vectors = (columns - column) / LANES;
        for (int row = 0; row < rows; row++) shifted[row] = source[row] + column;
        if (vectors >= STRIP)
            add_strip(mixed + column, shifted, flips + column / LANES, rows, columns, STRIP);
        else
            add_strip(mixed + column, shifted, flips + column / LANES, rows, columns, vectors);
    }
    add_turned(buckets, mixed, columns, (by->angles[place] + by->turns[block]) % columns, by->signs[block]);
}

INLINE void project_row(const Projection *by, int64_t start, const float *row, int columns, int count,
                        double *buckets) {
    float mixed[MOST_COLUMNS];
    for (int column = 0; column < columns; column++)
        mixed[column] = column < count ? row[column] * by->elements[start + column] : 0.0f;
    add_turned(buckets, mixed, columns, by->angles[start / columns], 1.0);
}

typedef struct {
    const void *values;
    int halves;
    int64_t count;
    float scale;
    int columns;
    const Projection *by;
    int64_t size; /* of a piece, whole blocks */
    Sums *sums;   /* of every piece */
    double *buckets;
} Moments;

FOR_EVERY_CPU
static void piece_of_moments(void *about, int64_t number) {
    const Moments *all_of = about;
    const int columns = all_of->columns;
    const Projection *by = all_of->by;
    double *buckets = all_of->buckets + number * columns;
    int64_t start = number * all_of->size;
    const int64_t end = all_of->count - start < all_of->size ? all_of->count : start + all_of->size;
    float buffer[ROWS][MOST_COLUMNS];
    const float *source[ROWS];
    const float infinity = __builtin_inff();
    Sums sums = {0, 0, 0, 0, infinity, -infinity};
    Lanes lanes = {all(0), all(0), all(0), all(0), all(infinity), all(-infinity), 0};
    for (int64_t tile = start / (ROWS * columns); start < end; tile++) {
        int rows = 0;
        for (; rows < ROWS && start < end; rows++) {
            const int taken = end - start < columns ? (int)(end - start) : columns;
            source[rows] = read_row(all_of->values, all_of->halves, start, taken, columns, buffer[rows]);
            add_row(&lanes, &sums, source[rows], taken, all_of->scale);
            if (by && by->elements) project_row(by, start, source[rows], columns, taken, buckets);
            start += taken;
        }
        if (by && !by->elements) project_tile(by, tile, source, rows, columns, buckets);
    }
    flush_moments(&lanes, &sums);
    sums.minimum = least(smallest(lanes.minimum), sums.minimum);
    sums.maximum = most(largest(lanes.maximum), sums.maximum);
    all_of->sums[number] = sums;
}

/* 0 if a few of the numbers are in the middle of the range of cubes, else the exponent that suits them. */
static int likely_exponent(const void *values, int halves, int64_t count) {
    const int64_t step = count > FEW ? count / FEW : 1;
    double reach = 0;
    for (int64_t place = 0; place < count; place += step) {
        float value;
        if (halves) {
            const uint32_t bits = (uint32_t)((const uint16_t *)values)[place] << 16;
            memcpy(&value, &bits, sizeof value);
        } else {
            value = ((const float *)values)[place];
        }
        reach = most(__builtin_fabs(value), reach);
    }
    int exponent = 0;
    if ((reach > 0 && reach < 1e-5) || (reach > 1e8 && reach < __builtin_inf())) frexp(reach, &exponent);
    return exponent < -FARTHEST ? -FARTHEST : exponent > FARTHEST ? FARTHEST : exponent;
}

/* Powers are taken of the numbers times two to minus ``*exponent``, which is chosen here if it is ANY.
   No projection if ``by`` is NULL. 0 if there was no memory for what the pieces give, else 1. */
int parfocal_moments(const void *values, int halves, int64_t count, int *exponent, int columns,
                     const Projection *by, double *sums_out, double *buckets) {
    if (*exponent == ANY) *exponent = likely_exponent(values, halves, count);
    const float scale = (float)ldexp(1.0, -*exponent);
    Moments all_of = {values, halves, count, scale, columns, by, piece_length(count, TILES * ROWS * columns), NULL, NULL};
    const int64_t pieces = pieces_of(count, all_of.size);
    double *found = calloc((size_t)(pieces * (6 + columns)), sizeof(double));
    if (found == NULL) return 0;
    all_of.sums = (Sums *)found;
    all_of.buckets = found + 6 * pieces;
    parfocal_share(piece_of_moments, &all_of, pieces);
    Sums sums = all_of.sums[0];
    for (int64_t piece = 1; piece < pieces; piece++) {
        const Sums *more = all_of.sums + piece;
        sums.total += more->total;
        sums.absolute += more->absolute;
        sums.square += more->square;
        sums.cube += more->cube;
        sums.minimum = least(more->minimum, sums.minimum);
        sums.maximum = most(more->maximum, sums.maximum);
    }
    for (int64_t place = 0; by && place < pieces * columns; place++)
        buckets[place % columns] += all_of.buckets[place];
    memcpy(sums_out, &sums, sizeof sums);
    free(found);
    return 1;
}

/* ---- the difference of two blocks ---- */

enum { CHUNK = 16 * LANES }; /* few enough additions a lane that equal terms do not drift */

typedef struct {
    double maximum, minimum, absolute, square, square_x, square_y, product;
    double minimum_x, maximum_x, minimum_y, maximum_y, relative, mismatched, position;
} Difference;

typedef struct {
    Floats maximum, minimum, absolute, square, square_x, square_y, product;
    Floats minimum_x, maximum_x, minimum_y, maximum_y;
    Bits steeper; /* where a relative difference may exceed the largest so far */
    Bits over;    /* minus the number of differences that exceed the lower bound of the tolerance */
} Pairs;

typedef struct {
    double atol, rtol;
    float low_atol, low_rtol; /* slightly less, for float32; exact if both are zero */
} Tolerance;

static Tolerance tolerance(double atol, double rtol) {
    const double less = 1 - 1e-6, tiny = 1e-44, low_atol = atol * less - tiny;
    return (Tolerance){atol, rtol, (float)(low_atol > 0 ? low_atol : 0), (float)(rtol * less)};
}

INLINE void add_pair(Pairs *pairs, Floats x, Floats y, float steepest, const Tolerance *allowed) {
    const Floats off = magnitude(x - y), size = magnitude(y);
    pairs->maximum = larger(off, pairs->maximum);
    pairs->minimum = smaller(off, pairs->minimum);
    pairs->absolute += off;
    pairs->square += off * off;
    pairs->square_x += x * x;
    pairs->square_y += y * y;
    pairs->product += x * y;
    pairs->minimum_x = smaller(x, pairs->minimum_x);
    pairs->maximum_x = larger(x, pairs->maximum_x);
    pairs->minimum_y = smaller(y, pairs->minimum_y);
    pairs->maximum_y = larger(y, pairs->maximum_y);
    pairs->steeper |= off > steepest * size;
    pairs->over += off > allowed->low_atol + allowed->low_rtol * size;
}

INLINE double apart(float x, float y) { return __builtin_fabs((double)x - (double)y); }

INLINE double exceeding(const float *x, const float *y, int count, const Tolerance *allowed) {
    int found = 0;
    for (int place = 0; place < count; place++)
        found += apart(x[place], y[place]) > allowed->atol + allowed->rtol * __builtin_fabs((double)y[place]);
    return found;
}

INLINE double steepest_of(const float *x, const float *y, int count, double known) {
    for (int place = 0; place < count; place++) {
        const double off = apart(x[place], y[place]);
        const double ratio = off > 0 ? off / __builtin_fabs((double)y[place]) : 0.0;
        known = ratio > known ? ratio : known;
    }
    return known;
}

INLINE void add_chunk(Difference *found, const float *x, const float *y, const Tolerance *allowed) {
    const float infinity = __builtin_inff();
    const Floats zero = all(0), high = all(infinity);
    Pairs pairs = {all(-1), high, zero, zero, zero, zero, zero, high, -high, high, -high, {0}, {0}};
    /* a little less than the largest so far, so that rounding hides none */
    const float steepest = (float)(found->relative * (1 - 1e-6));
    for (int place = 0; place < CHUNK; place += LANES)
        add_pair(&pairs, load(x + place), load(y + place), steepest, allowed);
    found->absolute += sum(pairs.absolute);
    found->square += sum(pairs.square);
    found->square_x += sum(pairs.square_x);
    found->square_y += sum(pairs.square_y);
    found->product += sum(pairs.product);
    found->maximum = most(found->maximum, largest(pairs.maximum));
    found->minimum = least(found->minimum, smallest(pairs.minimum));
    found->minimum_x = least(found->minimum_x, smallest(pairs.minimum_x));
    found->maximum_x = most(found->maximum_x, largest(pairs.maximum_x));
    found->minimum_y = least(found->minimum_y, smallest(pairs.minimum_y));
    found->maximum_y = most(found->maximum_y, largest(pairs.maximum_y));
    int steeper = 0, over = 0;
    for (int lane = 0; lane < LANES; lane++) steeper |= pairs.steeper[lane], over -= pairs.over[lane];
    const int exact = allowed->atol == 0 && allowed->rtol == 0;
    if (over) found->mismatched += exact ? over : exceeding(x, y, CHUNK, allowed);
    if (steeper) found->relative = steepest_of(x, y, CHUNK, found->relative);
}

/* What is left of a block, number by number. */
INLINE void add_rest(Difference *found, const float *x, const float *y, int count, const Tolerance *allowed) {
    for (int place = 0; place < count; place++) {
        const double a = x[place], b = y[place], off = __builtin_fabsf(x[place] - y[place]);
        found->absolute += off;
        found->square += off * off;
        found->square_x += a * a;
        found->square_y += b * b;
        found->product += a * b;
        found->maximum = most(off, found->maximum);
        found->minimum = least(off, found->minimum);
        found->minimum_x = least(a, found->minimum_x);
        found->maximum_x = most(a, found->maximum_x);
        found->minimum_y = least(b, found->minimum_y);
        found->maximum_y = most(b, found->maximum_y);
    }
    found->relative = steepest_of(x, y, count, found->relative);
    found->mismatched += exceeding(x, y, count, allowed);
}

typedef struct {
    const float *x, *y;
    int64_t count, size; /* of all, and of a piece */
    void *found;         /* of every piece */
    const Tolerance *allowed;
    double known;
} Both;

static int64_t end_of(const Both *both, int64_t start) {
    return both->count - start < both->size ? both->count : start + both->size;
}

FOR_EVERY_CPU
static void piece_of_difference(void *about, int64_t number) {
    const Both *both = about;
    const float *x = both->x, *y = both->y;
    const double infinity = __builtin_inf();
    Difference found = {-1, infinity, 0, 0, 0, 0, 0, infinity, -infinity, infinity, -infinity, 0, 0, -1};
    int64_t start = number * both->size;
    for (const int64_t end = end_of(both, start); start < end; start += CHUNK) {
        const int size = end - start < CHUNK ? (int)(end - start) : CHUNK;
        const double before = most(found.maximum, both->known);
        look_ahead(x + start, size * 4);
        look_ahead(y + start, size * 4);
        if (size == CHUNK)
            add_chunk(&found, x + start, y + start, both->allowed);
        else
            add_rest(&found, x + start, y + start, size, both->allowed);
        for (int place = 0; found.maximum > before && place < size; place++)
            if (__builtin_fabsf(x[start + place] - y[start + place]) == found.maximum) {
                found.position = (double)(start + place);
                break;
            }
    }
    ((Difference *)both->found)[number] = found;
}

static void add_difference(Difference *found, const Difference *more) {
    found->absolute += more->absolute;
    found->square += more->square;
    found->square_x += more->square_x;
    found->square_y += more->square_y;
    found->product += more->product;
    if (more->maximum > found->maximum) found->position = more->position;
    found->maximum = most(more->maximum, found->maximum);
    found->minimum = least(more->minimum, found->minimum);
    found->minimum_x = least(more->minimum_x, found->minimum_x);
    found->maximum_x = most(more->maximum_x, found->maximum_x);
    found->minimum_y = least(more->minimum_y, found->minimum_y);
    found->maximum_y = most(more->maximum_y, found->maximum_y);
    found->relative = most(more->relative, found->relative);
    found->mismatched += more->mismatched;
}

/* The place of the largest difference is looked for only if it exceeds ``known``; else it is -1. */
void parfocal_difference(const float *x, const float *y, int64_t count, double atol, double rtol,
                         double known, double *out) {
    const Tolerance allowed = tolerance(atol, rtol);
    Difference found[MOST_PIECES];
    Both both = {x, y, count, piece_length(count, PAIRS), found, &allowed, known};
    const int64_t pieces = pieces_of(count, both.size);
    parfocal_share(piece_of_difference, &both, pieces);
    for (int64_t piece = 1; piece < pieces; piece++) add_difference(found, found + piece);
    memcpy(out, found, sizeof *found);
}

/* ---- how far two blocks are apart, and nothing else ---- */

typedef struct {
    double peak, square, reference_peak, reference_square;
    double over; /* how many differences may exceed the tolerance; 0: none does */
} Apart;

/* The whole lanes of up to ``FLUSH`` vectors; NaN shows in the sums, not in the peaks. */
INLINE int64_t add_apart(Apart *found, const float *x, const float *y, int64_t count,
                         const Tolerance *allowed) {
    Floats peak = all(0), reference_peak = all(0), square = all(0), reference_square = all(0);
    Bits over = {0};
    int64_t place = 0;
    for (; place + LANES <= count; place += LANES) {
        const Floats reference = load(y + place), off = load(x + place) - reference;
        const Floats far = magnitude(off), size = magnitude(reference);
        peak = larger(far, peak);
        reference_peak = larger(size, reference_peak);
        over += far > allowed->low_atol + allowed->low_rtol * size;
        square += off * off;
        reference_square += reference * reference;
    }
    found->peak = most(found->peak, largest(peak));
    found->reference_peak = most(found->reference_peak, largest(reference_peak));
    found->square += sum(square);
    found->reference_square += sum(reference_square);
    for (int lane = 0; lane < LANES; lane++) found->over -= over[lane];
    return place;
}

FOR_EVERY_CPU
static void piece_of_apart(void *about, int64_t number) {
    const Both *both = about;
    const float *x = both->x, *y = both->y;
    int64_t place = number * both->size;
    const int64_t end = end_of(both, place);
    Apart found = {0, 0, 0, 0, 0};
    while (end - place >= LANES) {
        const int64_t size = end - place < FLUSH * LANES ? end - place : FLUSH * LANES;
        look_ahead(x + place, size * 4);
        look_ahead(y + place, size * 4);
        place += add_apart(&found, x + place, y + place, size, both->allowed);
    }
    for (; place < end; place++) {
        const double off = __builtin_fabsf(x[place] - y[place]), reference = __builtin_fabsf(y[place]);
        found.peak = most(off, found.peak);
        found.reference_peak = most(reference, found.reference_peak);
        found.square += off * off;
        found.reference_square += reference * reference;
        found.over += off > both->allowed->low_atol + both->allowed->low_rtol * reference;
    }
    ((Apart *)both->found)[number] = found;
}

void parfocal_apart(const float *x, const float *y, int64_t count, double atol, double rtol, double *out) {
    const Tolerance allowed = tolerance(atol, rtol);
    Apart found[MOST_PIECES];
    Both both = {x, y, count, piece_length(count, PAIRS), found, &allowed, 0};
    const int64_t pieces = pieces_of(count, both.size);
    parfocal_share(piece_of_apart, &both, pieces);
    for (int64_t piece = 1; piece < pieces; piece++) {
        found->peak = most(found[piece].peak, found->peak);
        found->reference_peak = most(found[piece].reference_peak, found->reference_peak);
        found->square += found[piece].square;
        found->reference_square += found[piece].reference_square;
        found->over += found[piece].over;
    }
    memcpy(out, found, sizeof *found);
}
