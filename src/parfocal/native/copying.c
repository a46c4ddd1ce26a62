/* Copying bytes and summing them on the way: CRC-32, as zlib, gzip and PNG know it.

   A checksum is the remainder of the bytes, read as a polynomial, divided by a fixed one. Remainders of
   pieces are computed apart and put together: multiplying by a power of x moves a piece to its place. */

#include "sharing.h"

#include <stddef.h>
#include <string.h>

enum { PIECE = 1 << 18, PART = 1 << 14 };

static const uint32_t POLYNOMIAL = 0xedb88320; /* the lowest bit has the highest power */

typedef struct {
    char *to;
    const char *from;
    int64_t count;
    uint32_t *sums;
} Copy;

#if defined(__x86_64__)

#include <immintrin.h>

enum { FOLD = 64 };

static uint32_t table[256];

__attribute__((constructor)) static void fill_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >> 1) ^ POLYNOMIAL : rest >> 1;
        table[byte] = rest;
    }
}

static uint32_t add_bytes(uint32_t rest, const unsigned char *from, int64_t count) {
    for (int64_t place = 0; place < count; place++) rest = (rest >> 8) ^ table[(rest ^ from[place]) & 255];
    return rest;
}

#define CARRYLESS __attribute__((target("pclmul,sse4.1")))

CARRYLESS INLINE __m128i at(const char *from) { return _mm_loadu_si128((const __m128i *)from); }

/* ``value`` moved up by as many places as the two powers in ``by`` say, plus what stands there */
CARRYLESS INLINE __m128i fold(__m128i value, __m128i by, __m128i next) {
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(value, by, 0x00), _mm_clmulepi64_si128(value, by, 0x11)),
                         next);
}

/* The remainder of a whole number of FOLD bytes, at least one, after ``rest``. */
CARRYLESS static uint32_t add_folds(uint32_t rest, const char *from, int64_t count) {
    /* x to the power of 4 * 128 + 32 and 4 * 128 - 32, then of 128 + 32 and 128 - 32, bits reversed */
    const __m128i by_four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i a = _mm_xor_si128(at(from), _mm_cvtsi32_si128((int)rest)), b = at(from + 16), c = at(from + 32),
            d = at(from + 48);
    for (from += FOLD, count -= FOLD; count > 0; from += FOLD, count -= FOLD) {
        a = fold(a, by_four, at(from));
        b = fold(b, by_four, at(from + 16));
        c = fold(c, by_four, at(from + 32));
        d = fold(d, by_four, at(from + 48));
    }
    unsigned char last[16];
    _mm_storeu_si128((__m128i *)last, fold(fold(fold(a, by_one, b), by_one, c), by_one, d));
    return add_bytes(0, last, sizeof last);
}

static uint32_t add_part(uint32_t rest, const char *from, int64_t count) {
    const int64_t folds = count / FOLD * FOLD;
    if (folds) rest = add_folds(rest, from, folds);
    return add_bytes(rest, (const unsigned char *)from + folds, count - folds);
}

static int fast(void) { return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"); }

#else

static uint32_t add_part(uint32_t rest, const char *from, int64_t count) {
    (void)from, (void)count;
    return rest;
}

static int fast(void) { return 0; }

#endif

/* 1 if parfocal_copy may be called: without the processor's help zlib is faster. */
int parfocal_can_copy(void) { return fast(); }

/* The product of two polynomials, divided by ours. */
static uint32_t times(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (int bit = 31; bit >= 0; bit--) {
        if (a >> bit & 1) product ^= b;
        b = b & 1 ? (b >> 1) ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

/* The checksum of bytes with ``first`` and, behind them, ``count`` ones with ``second``. */
static uint32_t joined(uint32_t first, uint32_t second, int64_t count) {
    uint32_t shift = 1u << 31, power = 1u << 23; /* 1, and x to the eighth: one byte */
    for (; count; count >>= 1, power = times(power, power))
        if (count & 1) shift = times(shift, power);
    return times(shift, first) ^ second;
}

static int64_t piece_size(const Copy *copy, int64_t number) {
    const int64_t left = copy->count - number * PIECE;
    return left < PIECE ? left : PIECE;
}

static void copy_piece(void *about, int64_t number) {
    const Copy *copy = about;
    const int64_t start = number * PIECE, end = start + piece_size(copy, number);
    uint32_t rest = ~0u;
    for (int64_t place = start; place < end; place += PART) {
        const int64_t count = end - place < PART ? end - place : PART;
        memcpy(copy->to + place, copy->from + place, (size_t)count);
        rest = add_part(rest, copy->from + place, count);
    }
    copy->sums[number] = ~rest;
}

static void move_piece(void *about, int64_t number) {
    const Copy *copy = about;
    const int64_t start = number * PIECE;
    memcpy(copy->to + start, copy->from + start, (size_t)piece_size(copy, number));
}

/* Copies and nothing else: two threads also take fresh memory from the system twice as fast. */
void parfocal_move(char *to, const char *from, int64_t count) {
    Copy copy = {to, from, count, NULL};
    parfocal_share(move_piece, &copy, (count + PIECE - 1) / PIECE);
}

enum { AT_ONCE = 256 }; /* pieces */

/* Copies and returns the checksum, continued from that of what came before (0: nothing). */
uint32_t parfocal_copy(char *to, const char *from, int64_t count, uint32_t sum) {
    uint32_t sums[AT_ONCE];
    while (count > 0) {
        Copy copy = {to, from, count < (int64_t)AT_ONCE * PIECE ? count : (int64_t)AT_ONCE * PIECE, sums};
        const int64_t pieces = (copy.count + PIECE - 1) / PIECE;
        parfocal_share(copy_piece, &copy, pieces);
        for (int64_t number = 0; number < pieces; number++)
            sum = joined(sum, sums[number], piece_size(&copy, number));
        to += copy.count, from += copy.count, count -= copy.count;
    }
    return sum;
}
