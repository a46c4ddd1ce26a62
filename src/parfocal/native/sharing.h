/* Work that is cut into pieces, done by all threads there are. */

#ifndef PARFOCAL_SHARING_H
#define PARFOCAL_SHARING_H

#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

typedef void (*Piece)(void *about, int64_t number);

/* Calls ``piece(about, 0)`` to ``piece(about, pieces - 1)``, each once and in any order. */
void parfocal_share(Piece piece, void *about, int64_t pieces);

#endif
