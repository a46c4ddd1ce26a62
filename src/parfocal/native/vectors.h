/* Vectors as wide as the processor's own, and never wider: a compiler turns comparisons of wider ones into
   code for one number at a time. Whatever the width, numbers are added up in LANES lanes, in the same order. */

#ifndef PARFOCAL_VECTORS_H
#define PARFOCAL_VECTORS_H

#include "loops.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { WIDTH = 64 };
#elif defined(__AVX2__)
enum { WIDTH = 32 };
#else
enum { WIDTH = 16 }; /* SSE2, NEON */
#endif

enum { PER = WIDTH / 4 /* numbers of a vector */, PARTS = LANES / PER /* vectors of a row of lanes */ };

typedef float Floats __attribute__((vector_size(WIDTH)));
typedef int32_t Bits __attribute__((vector_size(WIDTH)));
typedef uint16_t Halves __attribute__((vector_size(WIDTH))); /* of bits, the lower half first */
typedef double Doubles __attribute__((vector_size(WIDTH)));

INLINE Floats load(const float *from) {
    Floats value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE Floats all(float value) { return value - (Floats){0}; }

INLINE Floats magnitude(Floats value) { return (Floats)((Bits)value & 0x7fffffff); }

/* smaller and larger: the second if one of the two is NaN; any: whether a
   comparison holds in one lane; widened: one half of the lanes */
#if defined(__AVX512F__)
INLINE Floats smaller(Floats a, Floats b) { return (Floats)_mm512_min_ps((__m512)a, (__m512)b); }
INLINE Floats larger(Floats a, Floats b) { return (Floats)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE Doubles widened(Floats value, int half) {
    const __m512d pairs = (__m512d)value;
    return (Doubles)_mm512_cvtps_pd((__m256)(half ? _mm512_extractf64x4_pd(pairs, 1) : _mm512_castpd512_pd256(pairs)));
}
INLINE int any(Bits value) { return _mm512_test_epi32_mask((__m512i)value, (__m512i)value) != 0; }
#elif defined(__AVX2__)
INLINE Floats smaller(Floats a, Floats b) { return (Floats)_mm256_min_ps((__m256)a, (__m256)b); }
INLINE Floats larger(Floats a, Floats b) { return (Floats)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE Doubles widened(Floats value, int half) {
    const __m256 eight = (__m256)value;
    return (Doubles)_mm256_cvtps_pd(half ? _mm256_extractf128_ps(eight, 1) : _mm256_castps256_ps128(eight));
}
INLINE int any(Bits value) { return _mm256_movemask_ps((__m256)value) != 0; }
#elif defined(__x86_64__)
INLINE Floats smaller(Floats a, Floats b) { return (Floats)_mm_min_ps((__m128)a, (__m128)b); }
INLINE Floats larger(Floats a, Floats b) { return (Floats)_mm_max_ps((__m128)a, (__m128)b); }
INLINE Doubles widened(Floats value, int half) {
    const __m128 four = (__m128)value;
    return (Doubles)_mm_cvtps_pd(half ? _mm_movehl_ps(four, four) : four);
}
INLINE int any(Bits value) { return _mm_movemask_ps((__m128)value) != 0; }
#else
INLINE Floats chosen(Bits where, Floats yes, Floats no) {
    return (Floats)(((Bits)yes & where) | ((Bits)no & ~where));
}
INLINE Floats smaller(Floats a, Floats b) { return chosen(a < b, a, b); }
INLINE Floats larger(Floats a, Floats b) { return chosen(a > b, a, b); }
INLINE Doubles widened(Floats value, int half) {
    Doubles found;
    for (int lane = 0; lane < PER / 2; lane++) found[lane] = value[half * (PER / 2) + lane];
    return found;
}
INLINE int any(Bits value) {
    int found = 0;
    for (int lane = 0; lane < PER; lane++) found |= value[lane];
    return found;
}
#endif

INLINE float smallest(Floats value) {
    float found = value[0];
    for (int lane = 1; lane < PER; lane++) found = value[lane] < found ? value[lane] : found;
    return found;
}

INLINE float largest(Floats value) { return -smallest(-value); }

INLINE double count(Bits value) { /* of lanes that were counted down */
    double found = 0;
    for (int lane = 0; lane < PER; lane++) found -= value[lane];
    return found;
}

/* Adds the lanes of one part to sums in double. */
INLINE void add_lanes(double *sums, Floats value) {
    for (int half = 0; half < 2; half++, sums += PER / 2) {
        Doubles found;
        memcpy(&found, sums, sizeof found);
        found += widened(value, half);
        memcpy(sums, &found, sizeof found);
    }
}

INLINE double total(const double *sums) {
    double found = 0;
    for (int lane = 0; lane < LANES; lane++) found += sums[lane];
    return found;
}

#endif
