/* Prints what the loops find in numbers of its own, to the last bit, on every path of this machine. */

#include "loops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *parfocal_path(int number);
int parfocal_use_path(int number);
int parfocal_moments(const void *, int, int64_t, int *, int, const Projection *, double *, double *);
void parfocal_difference(const void *, int, const void *, int, int64_t, double, double, double, double *);
void parfocal_apart(const void *, int, const void *, int, int64_t, double, double, double *);

enum { MOST = 700001, COLUMNS = 48 };

static uint64_t state = 1;

static uint32_t draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static uint16_t upper_half(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void print(const char *what, const double *numbers, int count) {
    printf("%s", what);
    for (int place = 0; place < count; place++) {
        uint64_t bits;
        memcpy(&bits, numbers + place, sizeof bits);
        printf(" %016llx", (unsigned long long)bits);
    }
    printf("\n");
}

static void report(const void *x, const void *y, int halves, int64_t size, const Projection *by) {
    double out[14], buckets[COLUMNS] = {0};
    int exponent = 0;
    parfocal_difference(x, halves, y, halves, size, 0, 0, -1, out);
    print("difference", out, 14);
    parfocal_difference(x, halves, y, halves, size, 1e-3, 1e-3, -1, out);
    print("tolerance", out, 14);
    parfocal_apart(x, halves, y, halves, size, 1e-3, 1e-3, out);
    print("apart", out, 5);
    if (!parfocal_moments(x, halves, size, &exponent, COLUMNS, by, out, buckets)) exit(1);
    print("moments", out, 6);
    print("projection", buckets, COLUMNS);
}

int main(void) {
    static float x[MOST], y[MOST];
    static uint16_t half_x[MOST], half_y[MOST];
    static uint16_t flips[TILES * ROWS * COLUMNS / LANES];
    static int64_t angles[TILES], turns[64];
    static double signs[64];
    for (int place = 0; place < MOST; place++) {
        y[place] = (float)((int)draw() - (1 << 30)) / (1 << 28);
        x[place] = y[place] * (1 + (float)(draw() % 1000) * 3e-6f);
        half_x[place] = upper_half(x[place]), half_y[place] = upper_half(y[place]);
    }
    for (int place = 0; place < TILES * ROWS * COLUMNS / LANES; place++) flips[place] = (uint16_t)draw();
    for (int place = 0; place < TILES; place++) angles[place] = draw() % COLUMNS;
    for (int place = 0; place < 64; place++) turns[place] = draw() % COLUMNS, signs[place] = draw() % 2 ? 1 : -1;
    const Projection by = {flips, angles, turns, signs, NULL};
    const int64_t sizes[] = {1, 15, 16, 255, 256, 257, 4099, 65537, MOST};
    for (int path = 0; parfocal_path(path); path++) {
        if (!parfocal_use_path(path)) continue;
        printf("path %s\n", parfocal_path(path));
        for (unsigned each = 0; each < sizeof sizes / sizeof *sizes; each++)
            report(x, y, 0, sizes[each], &by), report(half_x, half_y, 1, sizes[each], &by);
    }
    return 0;
}
