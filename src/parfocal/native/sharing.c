/* Threads for the loops: the framework's own ones if it lends them, else a few of our own.

   A framework's OpenMP threads stay awake for a while after each of its ops, waiting for the next one.
   A second set of threads would share the processors with them; asked through their own library they
   take up the work at once. */

#define _GNU_SOURCE
#include "sharing.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

enum { MOST_HELPERS = 3, WORTH_A_HELPER = 4 };

typedef void (*Parallel)(void (*)(void *), void *, unsigned, unsigned);

static struct {
    Parallel parallel; /* GOMP_parallel */
    int (*threads)(void); /* omp_get_max_threads */
    pid_t process; /* a forked process has none of its parent's threads */
} team;

typedef struct {
    Piece piece;
    void *about;
    int64_t pieces, next;
} Shared;

static void take(void *argument) {
    Shared *shared = argument;
    for (;;) {
        const int64_t number = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);
        if (number >= shared->pieces) return;
        shared->piece(shared->about, number);
    }
}

static void *help(void *argument) {
    take(argument);
    return NULL;
}

static int processors(void) {
#ifdef __linux__
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
#endif
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static void take_with_helpers(Shared *shared) {
    pthread_t helpers[MOST_HELPERS];
    int wanted = processors() - 1, started = 0;
    if (wanted > MOST_HELPERS) wanted = MOST_HELPERS;
    if (wanted > shared->pieces / WORTH_A_HELPER) wanted = (int)(shared->pieces / WORTH_A_HELPER);
    while (started < wanted && pthread_create(&helpers[started], NULL, help, shared) == 0) started++;
    take(shared);
    while (started > 0) pthread_join(helpers[--started], NULL);
}

void parfocal_share(Piece piece, void *about, int64_t pieces) {
    Shared shared = {piece, about, pieces, 0};
    if (pieces < 2) {
        take(&shared);
    } else if (team.parallel == NULL || team.process != getpid()) {
        take_with_helpers(&shared);
    } else {
        const int64_t threads = team.threads() < pieces ? team.threads() : pieces;
        if (threads > 1)
            team.parallel(take, &shared, (unsigned)threads, 0);
        else
            take(&shared);
    }
}

/* From now on the threads of this OpenMP library do the work; NULL: our own. */
void parfocal_use_team(Parallel parallel, int (*threads)(void)) {
    team.parallel = parallel;
    team.threads = threads;
    team.process = getpid();
}
