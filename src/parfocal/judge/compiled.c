/* One pass over many numbers, in one loop.

   What NumPy does in seven passes over a block (range, four sums of powers, projection) is limited
   by the caches; fused, it is limited by memory alone. Sums run in float32 over FLUSH additions a
   lane and in double beyond. Nothing here knows Python: see compiled.py, which also has the
   conditions under which a result counts. */

#include <stdint.h>
#include <string.h>

/* gcc makes one version for every generation of processors and picks one when the library loads */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define FOR_EVERY_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EVERY_CPU
#endif
#define INLINE static inline __attribute__((always_inline))

enum { LANES = 16, MOST_COLUMNS = 1024, MOST_PATTERNS = 4, AT_ONCE = 4, FLUSH = 64 };

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Bits __attribute__((vector_size(4 * LANES)));

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

/* ---- moments and projection of one block ---- */

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

/* One row of a tile; a last, incomplete vector counts number by number. */
INLINE void add_row(Lanes *lanes, Sums *sums, const float *row, int count) {
    int place = 0;
    for (; place + LANES <= count; place += LANES) {
        Floats value = load(row + place), square = value * value;
        lanes->total += value;
        lanes->absolute += magnitude(value);
        lanes->square += square;
        lanes->cube += square * value;
        lanes->minimum = smaller(value, lanes->minimum);
        lanes->maximum = larger(value, lanes->maximum);
    }
    lanes->additions += count / LANES;
    if (lanes->additions >= FLUSH) flush_moments(lanes, sums);
    for (; place < count; place++) {
        double value = row[place];
        sums->total += value;
        sums->absolute += value < 0 ? -value : value;
        sums->square += value * value;
        sums->cube += value * value * value;
        sums->minimum = value < sums->minimum ? value : sums->minimum;
        sums->maximum = value > sums->maximum ? value : sums->maximum;
    }
}

/* A row of float32, in place if it is whole, else filled up with zeros; a bfloat16 is the upper
   half of a float32. */
INLINE const float *read_row(const void *values, int halves, int64_t start, int count, int columns,
                             float *buffer) {
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

/* signs[tile][group][1 + patterns][rows] and choice[tile][group][1 + patterns][columns / groups] are
   the tables of projection.py, of which row 0 is left out; no projection if signs is NULL. */
FOR_EVERY_CPU
void parfocal_moments(const void *values, int halves, int64_t count, int columns, int groups, int patterns,
                      int rows, const float *signs, const float *choice, const int64_t *angles,
                      double *sums_out, double *buckets) {
    float buffer[AT_ONCE][MOST_COLUMNS], products[MOST_PATTERNS][MOST_COLUMNS], mixed[MOST_COLUMNS];
    const float infinity = __builtin_inff();
    Sums sums = {0, 0, 0, 0, infinity, -infinity};
    Lanes lanes = {all(0), all(0), all(0), all(0), all(infinity), all(-infinity), 0};
    const int width = columns / groups;
    int64_t start = 0;
    for (int64_t tile = 0; start < count; tile++) {
        const float *sign = signs + tile * groups * (patterns + 1) * rows;
        const float *chosen_sign = choice + tile * (patterns + 1) * columns;
        if (signs) memset(products, 0, sizeof products);
        for (int row = 0; row < rows && start < count; row += AT_ONCE) {
            const float *source[AT_ONCE];
            for (int each = 0; each < AT_ONCE; each++) {
                const int64_t left = count - start;
                const int taken = left < columns ? (int)left : columns;
                source[each] = read_row(values, halves, start, taken, columns, buffer[each]);
                add_row(&lanes, &sums, source[each], taken);
                start += taken;
            }
            for (int place = 0; signs && place < groups * patterns; place++) {
                const int group = place / patterns, pattern = place % patterns, shift = group * width;
                const float *s = sign + (group * (patterns + 1) + 1 + pattern) * rows + row;
                float *restrict product = products[pattern] + shift;
                const float *a = source[0] + shift, *b = source[1] + shift;
                const float *c = source[2] + shift, *d = source[3] + shift;
                for (int column = 0; column < width; column++)
                    product[column] += (s[0] * a[column] + s[1] * b[column]) +
                                       (s[2] * c[column] + s[3] * d[column]);
            }
        }
        if (!signs) continue;
        memset(mixed, 0, sizeof mixed);
        for (int place = 0; place < groups * patterns; place++) {
            const int group = place / patterns, pattern = place % patterns;
            const float *wanted = chosen_sign + (group * (patterns + 1) + 1 + pattern) * width;
            for (int column = 0; column < width; column++)
                mixed[group * width + column] += wanted[column] * products[pattern][group * width + column];
        }
        for (int column = 0; column < columns; column++)
            buckets[column] += mixed[(column + angles[tile]) % columns];
    }
    flush_moments(&lanes, &sums);
    const double low = smallest(lanes.minimum), high = largest(lanes.maximum);
    sums.minimum = low < sums.minimum ? low : sums.minimum;
    sums.maximum = high > sums.maximum ? high : sums.maximum;
    memcpy(sums_out, &sums, sizeof sums);
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

INLINE double least(double a, double b) { return a < b ? a : b; }

INLINE double most(double a, double b) { return a > b ? a : b; }

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

/* The place of the largest difference is looked for only if it exceeds ``known``; else it is -1. */
FOR_EVERY_CPU
void parfocal_difference(const float *x, const float *y, int64_t count, double atol, double rtol,
                         double known, double *out) {
    const double infinity = __builtin_inf();
    const double less = 1 - 1e-6, tiny = 1e-44;
    const double low_atol = atol * less - tiny;
    const Tolerance allowed = {atol, rtol, (float)(low_atol > 0 ? low_atol : 0), (float)(rtol * less)};
    Difference found = {-1, infinity, 0, 0, 0, 0, 0, infinity, -infinity, infinity, -infinity, 0, 0, -1};
    for (int64_t start = 0; start < count; start += CHUNK) {
        const int size = count - start < CHUNK ? (int)(count - start) : CHUNK;
        const double before = most(found.maximum, known);
        if (size == CHUNK)
            add_chunk(&found, x + start, y + start, &allowed);
        else
            add_rest(&found, x + start, y + start, size, &allowed);
        for (int place = 0; found.maximum > before && place < size; place++)
            if (__builtin_fabsf(x[start + place] - y[start + place]) == found.maximum) {
                found.position = (double)(start + place);
                break;
            }
    }
    memcpy(out, &found, sizeof found);
}
