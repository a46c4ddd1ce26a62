/* Work that is cut into pieces, done by all threads there are. */

#ifndef PARFOCAL_SHARING_H
#define PARFOCAL_SHARING_H

#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

/* gcc makes one version for every generation of processors and picks one when the library loads */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define FOR_EVERY_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EVERY_CPU
#endif

typedef void (*Piece)(void *about, int64_t number);

/* Calls ``piece(about, 0)`` to ``piece(about, pieces - 1)``, each once and in any order. */
void parfocal_share(Piece piece, void *about, int64_t pieces);

#endif
