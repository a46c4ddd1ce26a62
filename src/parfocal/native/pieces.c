/* One pass over many numbers, in one loop: what NumPy does in seven passes is limited by the caches, this by
   memory alone. Compiled once for every kind of processor; PARFOCAL_PIECES is the name of what comes out.

   Numbers are summed by chunks of LANES lanes and 16 rows. The rows of a lane are added in float32 as a
   tree, two and two: four roundings, and equal terms do not drift. Lanes and chunks are added in double. The
   order does not depend on the width of the processor's vectors, and no compiler may fuse a product with a
   sum (-ffp-contract=off), so that every processor finds the same figures to the last bit. */

#include "vectors.h"

enum { CHUNK = 16 * LANES, STRIP = 4 / PARTS /* words of flips: four vectors fit the registers */ };
/* Rows that are read once for their moments and once more, from the nearest cache, for the projection. So few that
   memory, which is idle meanwhile, goes on with what follows: eight were fastest of 1 to 64. */
enum { BAND = 8 };

typedef uint32_t Word __attribute__((may_alias));

/* So many numbers from a place on as float32: where they lie, or in ``room``. */
INLINE const float *read_numbers(const Numbers *from, int64_t start, int64_t count, float *room) {
    if (!from->halves) return (const float *)from->values + start;
    const uint16_t *halves = (const uint16_t *)from->values + start;
    Word *words = (Word *)room;
    for (int64_t place = 0; place < count; place++) words[place] = (Word)halves[place] << 16;
    return room;
}

INLINE int64_t end_of(int64_t start, int64_t size, int64_t count) {
    return count - start < size ? count : start + size;
}

/* ---- sums over a chunk: so many sums in double, LANES lanes each ---- */

enum { POWERS = 4, PRODUCTS = 5, SQUARES = 2 };

/* unrolled, these loops would need more registers than there are */
#define ONE_BY_ONE _Pragma("GCC unroll 1")

INLINE Floats four(Floats a, Floats b, Floats c, Floats d) { return (a + b) + (c + d); }

/* Adds what four times four rows gave to the sums from lane ``part`` on. */
INLINE void add_quarters(double (*sums)[LANES], int part, Floats (*quarters)[4], int count) {
    for (int sum = 0; sum < count; sum++)
        add_lanes(sums[sum] + part, four(quarters[sum][0], quarters[sum][1], quarters[sum][2], quarters[sum][3]));
}

/* Values, magnitudes, squares and cubes, all but the first of the numbers times ``scale``; and the range, which
   means nothing where there is a NaN. */
INLINE void add_powers(double (*sums)[LANES], const float *from, float scale, Floats *minimum, Floats *maximum) {
    for (int part = 0; part < LANES; part += PER) {
        Floats quarters[POWERS][4];
        ONE_BY_ONE for (int quarter = 0; quarter < 4; quarter++) {
            const float *at = from + quarter * (CHUNK / 4) + part;
            const Floats a = load(at), b = load(at + LANES), c = load(at + 2 * LANES), d = load(at + 3 * LANES);
            const Floats e = a * scale, f = b * scale, g = c * scale, h = d * scale;
            const Floats ee = e * e, ff = f * f, gg = g * g, hh = h * h;
            *minimum = smaller(smaller(a, b), smaller(smaller(c, d), *minimum));
            *maximum = larger(larger(a, b), larger(larger(c, d), *maximum));
            quarters[0][quarter] = four(a, b, c, d);
            quarters[1][quarter] = four(magnitude(e), magnitude(f), magnitude(g), magnitude(h));
            quarters[2][quarter] = four(ee, ff, gg, hh);
            quarters[3][quarter] = four(ee * e, ff * f, gg * g, hh * h);
        }
        add_quarters(sums, part, quarters, POWERS);
    }
}

/* Differences, their squares, the squares and the products of the numbers. */
INLINE void add_products(double (*sums)[LANES], const float *x, const float *y) {
    for (int part = 0; part < LANES; part += PER) {
        Floats quarters[PRODUCTS][4];
        ONE_BY_ONE for (int quarter = 0; quarter < 4; quarter++) {
            const float *at_x = x + quarter * (CHUNK / 4) + part, *at_y = y + quarter * (CHUNK / 4) + part;
            const Floats a = load(at_x), b = load(at_x + LANES), c = load(at_x + 2 * LANES), d = load(at_x + 3 * LANES);
            const Floats p = load(at_y), q = load(at_y + LANES), r = load(at_y + 2 * LANES), s = load(at_y + 3 * LANES);
            const Floats ap = a - p, bq = b - q, cr = c - r, ds = d - s;
            quarters[0][quarter] = four(magnitude(ap), magnitude(bq), magnitude(cr), magnitude(ds));
            quarters[1][quarter] = four(ap * ap, bq * bq, cr * cr, ds * ds);
            quarters[2][quarter] = four(a * a, b * b, c * c, d * d);
            quarters[3][quarter] = four(p * p, q * q, r * r, s * s);
            quarters[4][quarter] = four(a * p, b * q, c * r, d * s);
        }
        add_quarters(sums, part, quarters, PRODUCTS);
    }
}

/* The squares of the differences and of the second numbers, as ``add_products`` finds them. */
INLINE void add_squares(double (*sums)[LANES], const float *x, const float *y) {
    for (int part = 0; part < LANES; part += PER) {
        Floats quarters[SQUARES][4];
        for (int quarter = 0; quarter < 4; quarter++) {
            const float *at_x = x + quarter * (CHUNK / 4) + part, *at_y = y + quarter * (CHUNK / 4) + part;
            const Floats p = load(at_y), q = load(at_y + LANES), r = load(at_y + 2 * LANES), s = load(at_y + 3 * LANES);
            const Floats ap = load(at_x) - p, bq = load(at_x + LANES) - q;
            const Floats cr = load(at_x + 2 * LANES) - r, ds = load(at_x + 3 * LANES) - s;
            quarters[0][quarter] = four(ap * ap, bq * bq, cr * cr, ds * ds);
            quarters[1][quarter] = four(p * p, q * q, r * r, s * s);
        }
        add_quarters(sums, part, quarters, SQUARES);
    }
}

/* ---- moments and projection ---- */

typedef struct {
    double lanes[POWERS][LANES];
    double rest[POWERS];
    Floats minimum, maximum;
    double rest_minimum, rest_maximum;
} Range;

/* Any number of numbers; those that fill no chunk count one by one. */
INLINE void add_moments(Range *found, const float *from, int64_t size, float scale) {
    int64_t place = 0;
    for (; place + CHUNK <= size; place += CHUNK) {
        if (scale == 1) /* as a rule; a constant, so that there is no product */
            add_powers(found->lanes, from + place, 1, &found->minimum, &found->maximum);
        else
            add_powers(found->lanes, from + place, scale, &found->minimum, &found->maximum);
    }
    for (; place < size; place++) {
        const double value = from[place], scaled = value * scale;
        found->rest[0] += value;
        found->rest[1] += __builtin_fabs(scaled);
        found->rest[2] += scaled * scaled;
        found->rest[3] += scaled * scaled * scaled;
        found->rest_minimum = least(value, found->rest_minimum);
        found->rest_maximum = most(value, found->rest_maximum);
    }
}

/* Adds to the sums, with signs, ``words`` times LANES neighbouring columns of some rows of a tile. */
INLINE void add_strip(float *sums, const float *tile, const uint16_t *flips, int rows, int columns, int words) {
    /* times this, the bit of a column becomes the highest of the upper half of its lane: the sign */
    Halves to_sign[PARTS];
    for (int place = 0; place < LANES; place++) {
        to_sign[place / PER][place % PER * 2] = 0;
        to_sign[place / PER][place % PER * 2 + 1] = (uint16_t)(1 << (LANES - 1 - place));
    }
    Floats strip[STRIP][PARTS]; /* filled a vector at a time: a copy of many bytes would pass through memory */
    for (int word = 0; word < words; word++)
        for (int part = 0; part < PARTS; part++) strip[word][part] = load(sums + word * LANES + part * PER);
    for (int row = 0; row < rows; row++, tile += columns, flips += columns / LANES)
        for (int word = 0; word < words; word++)
            for (int part = 0; part < PARTS; part++) {
                const Bits flip = (Bits)(to_sign[part] * flips[word]) & INT32_MIN;
                strip[word][part] += (Floats)((Bits)load(tile + word * LANES + part * PER) ^ flip);
            }
    for (int word = 0; word < words; word++)
        for (int part = 0; part < PARTS; part++)
            memcpy(sums + word * LANES + part * PER, &strip[word][part], sizeof(Floats));
}

INLINE void add_turned(double *sums, const float *values, int columns, int64_t turn, double sign) {
    for (int column = 0; column < columns - turn; column++) sums[column] += sign * values[column + turn];
    for (int column = columns - (int)turn; column < columns; column++)
        sums[column] += sign * values[column + turn - columns];
}

/* Some rows of a tile, from a place in the array on: added to the columns of the tile, and those to the buckets
   when it is complete. */
INLINE void project_band(const Projection *by, int64_t start, const float *band, int rows, int columns, int last,
                         float *mixed, double *buckets) {
    const int64_t row = start / columns, first = row % ROWS, tile = row / ROWS;
    const int64_t place = tile % TILES, block = tile / TILES;
    const uint16_t *flips = by->flips + (place * ROWS + first) * (columns / LANES);
    int column = 0;
    if (first == 0) memset(mixed, 0, (size_t)columns * sizeof(float));
    for (; column + STRIP * LANES <= columns; column += STRIP * LANES)
        add_strip(mixed + column, band + column, flips + column / LANES, rows, columns, STRIP);
    for (; column < columns; column += LANES)
        add_strip(mixed + column, band + column, flips + column / LANES, rows, columns, 1);
    if (first + rows == ROWS || last)
        add_turned(buckets, mixed, columns, (by->angles[place] + by->turns[block]) % columns, by->signs[block]);
}

INLINE void project_rows(const Projection *by, int64_t start, const float *tile, int64_t size, int columns,
                         double *buckets) {
    float mixed[MOST_COLUMNS];
    for (int64_t row = 0; row < size; row += columns) {
        for (int column = 0; column < columns; column++)
            mixed[column] = row + column < size ? tile[row + column] * by->elements[start + row + column] : 0.0f;
        add_turned(buckets, mixed, columns, by->angles[(start + row) / columns], 1.0);
    }
}

static void piece_of_moments(void *about, int64_t number) {
    const Moments *all_of = about;
    const int columns = all_of->columns;
    const int band_size = BAND * columns % CHUNK ? 2 * BAND * columns : BAND * columns; /* whole chunks */
    const Projection *by = all_of->by;
    double *buckets = all_of->buckets + number * columns;
    int64_t start = number * all_of->size;
    const int64_t end = end_of(start, all_of->size, all_of->count);
    const float infinity = __builtin_inff();
    float room[2 * BAND * MOST_COLUMNS], mixed[MOST_COLUMNS];
    Range found = {{{0}}, {0}, all(infinity), all(-infinity), infinity, -infinity};
    for (; start < end; start += band_size) {
        const int64_t size = end - start < band_size ? end - start : band_size;
        const int rows = (int)((size + columns - 1) / columns);
        const float *band = read_numbers(&all_of->from, start, size, room);
        add_moments(&found, band, size, all_of->scale);
        if (by == NULL) continue;
        if (by->elements) {
            project_rows(by, start, band, size, columns, buckets);
            continue;
        }
        if (size < rows * columns) { /* fill up the last row with zeros */
            if (band != room) memcpy(room, band, (size_t)size * sizeof(float));
            memset(room + size, 0, (size_t)(rows * columns - size) * sizeof(float));
            band = room;
        }
        project_band(by, start, band, rows, columns, start + size == end, mixed, buckets);
    }
    all_of->sums[number] = (Sums){total(found.lanes[0]) + found.rest[0],
                                  total(found.lanes[1]) + found.rest[1],
                                  total(found.lanes[2]) + found.rest[2],
                                  total(found.lanes[3]) + found.rest[3],
                                  least(smallest(found.minimum), found.rest_minimum),
                                  most(largest(found.maximum), found.rest_maximum)};
}

/* ---- the difference of two arrays ---- */

typedef struct {
    Floats minimum, minimum_x, maximum_x, minimum_y, maximum_y;
    Bits unequal; /* minus the number of differences that are not 0, if that is what is asked for */
} Extremes;

typedef struct {
    Floats maximum; /* of this chunk */
    Bits steeper;   /* where a relative difference may exceed the largest so far */
    Bits over;      /* where a difference may exceed the tolerance */
} Noticed;

INLINE Noticed add_extremes(Extremes *found, const float *x, const float *y, float steepest,
                            const Tolerance *allowed, int exact) {
    Noticed noticed = {{0}, {0}, {0}};
    Extremes extremes = *found;
    for (int place = 0; place < CHUNK; place += PER) {
        const Floats a = load(x + place), b = load(y + place), off = magnitude(a - b), size = magnitude(b);
        noticed.maximum = larger(off, noticed.maximum);
        noticed.steeper |= off > steepest * size;
        extremes.minimum = smaller(off, extremes.minimum);
        extremes.minimum_x = smaller(a, extremes.minimum_x);
        extremes.maximum_x = larger(a, extremes.maximum_x);
        extremes.minimum_y = smaller(b, extremes.minimum_y);
        extremes.maximum_y = larger(b, extremes.maximum_y);
        if (exact)
            extremes.unequal += off > 0;
        else
            noticed.over |= off > allowed->low_atol + allowed->low_rtol * size;
    }
    *found = extremes;
    return noticed;
}

INLINE double gap(float x, float y) { return __builtin_fabs((double)x - (double)y); }

INLINE int exceeds(float x, float y, const Tolerance *allowed) {
    return gap(x, y) > allowed->atol + allowed->rtol * __builtin_fabs((double)y);
}

/* How many differences of a chunk exceed the tolerance: in float32, and where that cannot tell, in double. */
INLINE double exceeding(const float *x, const float *y, const Tolerance *allowed) {
    Bits sure = {0}, unsure = {0};
    for (int place = 0; place < CHUNK; place += PER) {
        const Floats b = load(y + place), off = magnitude(load(x + place) - b), size = magnitude(b);
        const Bits far = off > allowed->high_atol + allowed->high_rtol * size;
        sure += far;
        unsure |= far ^ (off > allowed->low_atol + allowed->low_rtol * size);
    }
    if (!any(unsure)) return count(sure);
    int found = 0;
    for (int place = 0; place < CHUNK; place++) found += exceeds(x[place], y[place], allowed);
    return found;
}

INLINE double steepest_of(const float *x, const float *y, int64_t size, double known) {
    for (int64_t place = 0; place < size; place++) {
        const double off = gap(x[place], y[place]);
        const double ratio = off > 0 ? off / __builtin_fabs((double)y[place]) : 0.0;
        known = ratio > known ? ratio : known;
    }
    return known;
}

INLINE int64_t place_of(const float *x, const float *y, int64_t size, double off) {
    for (int64_t place = 0; place < size; place++)
        if (__builtin_fabsf(x[place] - y[place]) == off) return place;
    return -1;
}

/* What is left of a piece, number by number. */
INLINE void add_rest(Difference *found, const float *x, const float *y, int64_t size, const Tolerance *allowed) {
    for (int64_t place = 0; place < size; place++) {
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
        found->mismatched += exceeds(x[place], y[place], allowed);
    }
    found->relative = steepest_of(x, y, size, found->relative);
}

INLINE void add_difference(Difference *found, const Both *both, int64_t start, int64_t end, int exact) {
    const float infinity = __builtin_inff();
    const Floats high = all(infinity);
    Extremes extremes = {high, high, -high, high, -high, {0}};
    double sums[PRODUCTS][LANES] = {{0}};
    float room_x[CHUNK], room_y[CHUNK];
    for (; start < end; start += CHUNK) {
        const int64_t size = end - start < CHUNK ? end - start : CHUNK;
        const float *x = read_numbers(&both->x, start, size, room_x), *y = read_numbers(&both->y, start, size, room_y);
        const double before = most(found->maximum, both->known);
        if (size == CHUNK) {
            /* a little less than the largest so far, so that rounding hides none */
            const float steepest = (float)(found->relative * (1 - 1e-6));
            const Noticed noticed = add_extremes(&extremes, x, y, steepest, &both->allowed, exact);
            add_products(sums, x, y);
            if (any((noticed.maximum > (float)found->maximum) | noticed.steeper | noticed.over)) {
                found->maximum = most(largest(noticed.maximum), found->maximum);
                if (any(noticed.over)) found->mismatched += exceeding(x, y, &both->allowed);
                if (any(noticed.steeper)) found->relative = steepest_of(x, y, CHUNK, found->relative);
            }
        } else {
            add_rest(found, x, y, size, &both->allowed);
        }
        if (found->maximum > before) found->position = (double)(start + place_of(x, y, size, found->maximum));
    }
    found->absolute += total(sums[0]);
    found->square += total(sums[1]);
    found->square_x += total(sums[2]);
    found->square_y += total(sums[3]);
    found->product += total(sums[4]);
    found->minimum = least(smallest(extremes.minimum), found->minimum);
    found->minimum_x = least(smallest(extremes.minimum_x), found->minimum_x);
    found->maximum_x = most(largest(extremes.maximum_x), found->maximum_x);
    found->minimum_y = least(smallest(extremes.minimum_y), found->minimum_y);
    found->maximum_y = most(largest(extremes.maximum_y), found->maximum_y);
    found->mismatched += count(extremes.unequal);
}

static void piece_of_difference(void *about, int64_t number) {
    const Both *both = about;
    const double infinity = __builtin_inf();
    const int64_t start = number * both->size, end = end_of(start, both->size, both->count);
    Difference found = {-1, infinity, 0, 0, 0, 0, 0, infinity, -infinity, infinity, -infinity, 0, 0, -1};
    if (both->allowed.atol == 0 && both->allowed.rtol == 0)
        add_difference(&found, both, start, end, 1);
    else
        add_difference(&found, both, start, end, 0);
    ((Difference *)both->found)[number] = found;
}

/* ---- how far two arrays are apart, and nothing else ---- */

static void piece_of_apart(void *about, int64_t number) {
    const Both *both = about;
    const Tolerance *allowed = &both->allowed;
    int64_t start = number * both->size;
    const int64_t end = end_of(start, both->size, both->count);
    Floats peak = all(0), reference_peak = all(0);
    Bits over = {0};
    double sums[SQUARES][LANES] = {{0}};
    Apart found = {0, 0, 0, 0, 0};
    float room_x[CHUNK], room_y[CHUNK];
    for (; start < end; start += CHUNK) {
        const int64_t size = end - start < CHUNK ? end - start : CHUNK;
        const float *x = read_numbers(&both->x, start, size, room_x), *y = read_numbers(&both->y, start, size, room_y);
        for (int place = 0; size == CHUNK && place < CHUNK; place += PER) {
            const Floats b = load(y + place), far = magnitude(load(x + place) - b), large = magnitude(b);
            peak = larger(far, peak); /* NaN shows in the sums, not in the peaks */
            reference_peak = larger(large, reference_peak);
            over += far > allowed->low_atol + allowed->low_rtol * large;
        }
        if (size == CHUNK) add_squares(sums, x, y);
        for (int64_t place = 0; size < CHUNK && place < size; place++) {
            const float off = __builtin_fabsf(x[place] - y[place]), reference = __builtin_fabsf(y[place]);
            found.peak = most(off, found.peak);
            found.reference_peak = most(reference, found.reference_peak);
            found.square += (double)off * off;
            found.reference_square += (double)reference * reference;
            found.over += off > allowed->low_atol + allowed->low_rtol * reference;
        }
    }
    found.peak = most(largest(peak), found.peak);
    found.reference_peak = most(largest(reference_peak), found.reference_peak);
    found.square += total(sums[0]);
    found.reference_square += total(sums[1]);
    found.over += count(over);
    ((Apart *)both->found)[number] = found;
}

const Pieces PARFOCAL_PIECES = {piece_of_moments, piece_of_difference, piece_of_apart};
