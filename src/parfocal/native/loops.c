/* The loops of ``pieces.c`` over whole arrays, for the processor that runs them.

   An array is cut into pieces by its size alone, and what the pieces give is put together in their order: a
   result does not depend on how many threads there are. */

#include "loops.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 32, FARTHEST = 100 /* exponents up to this are far from the ends of float32 */, ANY = INT_MIN };
enum { MOST_PIECES = 64, PAIRS = 1 << 18 /* of a piece, at least */ };

/* ---- the paths: one for every kind of processor, the best last ---- */

typedef struct {
    const char *name;
    const Pieces *pieces;
    int (*usable)(void);
} Path;

static int always(void) { return 1; }

#if defined(__x86_64__)

extern const Pieces parfocal_x86_64, parfocal_x86_64_v3, parfocal_x86_64_v4;

static int has_avx2(void) { return __builtin_cpu_supports("avx2"); }

static int has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static const Path PATHS[] = {
    {"x86-64", &parfocal_x86_64, always},
    {"x86-64-v3", &parfocal_x86_64_v3, has_avx2},
    {"x86-64-v4", &parfocal_x86_64_v4, has_avx512},
};

#else

extern const Pieces parfocal_portable;

static const Path PATHS[] = {{"portable", &parfocal_portable, always}};

#endif

enum { PATHS_IN_ALL = sizeof PATHS / sizeof *PATHS };

static const Path *path = PATHS;

/* The name of a path, best last; NULL past the end. */
const char *parfocal_path(int number) { return number < PATHS_IN_ALL ? PATHS[number].name : NULL; }

int parfocal_path_in_use(void) { return (int)(path - PATHS); }

/* 1 from now on, 0 if this processor cannot. */
int parfocal_use_path(int number) {
    if (number < 0 || number >= PATHS_IN_ALL || !PATHS[number].usable()) return 0;
    path = PATHS + number;
    return 1;
}

__attribute__((constructor)) static void choose_path(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    for (int number = 0; number < PATHS_IN_ALL; number++) parfocal_use_path(number);
}

/* How many numbers make a piece: whole blocks of ``length``, as few as keep the pieces few. */
static int64_t piece_length(int64_t count, int64_t length) {
    const int64_t blocks = (count + length * MOST_PIECES - 1) / (length * MOST_PIECES);
    return length * (blocks > 0 ? blocks : 1);
}

static int64_t pieces_of(int64_t count, int64_t size) { return count > size ? (count + size - 1) / size : 1; }

/* ---- moments and projection ---- */

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
    const int64_t size = piece_length(count, TILES * ROWS * columns), pieces = pieces_of(count, size);
    double *found = calloc((size_t)(pieces * (6 + columns)), sizeof(double));
    if (found == NULL) return 0;
    Moments all_of = {{values, halves}, count, scale, columns, by, size, (Sums *)found, found + 6 * pieces};
    parfocal_share(path->pieces->moments, &all_of, pieces);
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

/* ---- two arrays ---- */

/* Float32 arithmetic on a tolerance and a difference is wrong by less than ``slack`` and ``tiny``. */
static Tolerance tolerance(double atol, double rtol) {
    const double slack = 1e-6, tiny = 1e-44, low_atol = atol * (1 - slack) - tiny;
    return (Tolerance){atol,
                       rtol,
                       (float)(low_atol > 0 ? low_atol : 0),
                       (float)(rtol * (1 - slack)),
                       (float)(atol * (1 + slack) + tiny),
                       (float)(rtol * (1 + slack))};
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
void parfocal_difference(const void *x, int halves_x, const void *y, int halves_y, int64_t count, double atol,
                         double rtol, double known, double *out) {
    Difference found[MOST_PIECES];
    const int64_t size = piece_length(count, PAIRS), pieces = pieces_of(count, size);
    Both both = {{x, halves_x}, {y, halves_y}, count, size, found, tolerance(atol, rtol), known};
    parfocal_share(path->pieces->difference, &both, pieces);
    for (int64_t piece = 1; piece < pieces; piece++) add_difference(found, found + piece);
    memcpy(out, found, sizeof *found);
}

void parfocal_apart(const void *x, int halves_x, const void *y, int halves_y, int64_t count, double atol,
                    double rtol, double *out) {
    Apart found[MOST_PIECES];
    const int64_t size = piece_length(count, PAIRS), pieces = pieces_of(count, size);
    Both both = {{x, halves_x}, {y, halves_y}, count, size, found, tolerance(atol, rtol), 0};
    parfocal_share(path->pieces->apart, &both, pieces);
    for (int64_t piece = 1; piece < pieces; piece++) {
        found->peak = most(found[piece].peak, found->peak);
        found->reference_peak = most(found[piece].reference_peak, found->reference_peak);
        found->square += found[piece].square;
        found->reference_square += found[piece].reference_square;
        found->over += found[piece].over;
    }
    memcpy(out, found, sizeof *found);
}
