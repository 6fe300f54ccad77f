/* How much of an all-reduce goes on while its caller computes: the loop of OSU's osu_iallreduce
 * around any library, in C that is C++ too.
 *
 * Each call is timed alone (begin, wait); then begun, with as much computing before the wait as the
 * call alone takes. OSU's computing looks at the clock: it ends in time even where the library has
 * the processor meanwhile. So a third loop does a fixed number of turns, which take as long when
 * nothing else goes on: what a program sees whose steps have so much to do.
 *
 * Of an endless wish for processors a machine has few: `processors` are those that a rank uses in
 * the calls alone. Where it has one, no library hides more than the rest of it. */
#ifndef ISTHMUS_OVERLAP_H
#define ISTHMUS_OVERLAP_H

#include <stddef.h>
#include <stdio.h>
#include <time.h>

typedef struct {
    int rank;
    int ranks;
    void (*begin)(const float* send, float* recv, size_t elements);
    void (*wait)(void);
    void (*barrier)(void);
    /* Each value becomes the sum of every rank's. */
    void (*add)(double* values, int count);
} OverlapLibrary;

/* Means of a call, in seconds. */
typedef struct {
    double alone;
    double processors;
    double computing; /* by the clock */
    double both;
    double turns; /* a fixed number of them, nothing else going on */
    double bothTurns;
} OverlapTimes;

static double overlap_now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Some hundred nanoseconds in the first level of the caches. */
static void overlap_turn(void) {
    static volatile float kept;
    static float matrix[25][25];
    float sum = kept;
    matrix[0][0] = sum;
    for (int row = 0; row < 25; ++row)
        for (int column = 0; column < 25; ++column)
            sum += matrix[row][column] * matrix[column][row] + 1.0f;
    kept = sum * 1e-3f;
}

static long overlap_compute_for(double seconds) {
    long turns = 0;
    const double end = overlap_now(CLOCK_MONOTONIC) + seconds;
    for (; overlap_now(CLOCK_MONOTONIC) < end; ++turns) overlap_turn();
    return turns;
}

static double overlap_turns(long turns) {
    const double start = overlap_now(CLOCK_MONOTONIC);
    for (long turn = 0; turn < turns; ++turn) {
        overlap_turn();
        (void)overlap_now(CLOCK_MONOTONIC);
    }
    return overlap_now(CLOCK_MONOTONIC) - start;
}

/* One call with computing before its wait: for so long, or so many turns. */
static double overlap_call(const OverlapLibrary* library, const float* send, float* recv,
                           size_t elements, double seconds, long turns, double* computing) {
    library->barrier();
    const double start = overlap_now(CLOCK_MONOTONIC);
    library->begin(send, recv, elements);
    const double begun = overlap_now(CLOCK_MONOTONIC);
    if (seconds > 0) (void)overlap_compute_for(seconds);
    if (turns > 0) (void)overlap_turns(turns);
    *computing += overlap_now(CLOCK_MONOTONIC) - begun;
    library->wait();
    return overlap_now(CLOCK_MONOTONIC) - start;
}

/* Means over ranks and calls. */
static OverlapTimes overlap_measure(const OverlapLibrary* library, const float* send, float* recv,
                                    size_t elements, int warmups, int calls) {
    OverlapTimes sum = {0, 0, 0, 0, 0, 0};
    double unused = 0;
    for (int call = 0; call < warmups; ++call)
        (void)overlap_call(library, send, recv, elements, 0, 0, &unused);
    const double used = overlap_now(CLOCK_PROCESS_CPUTIME_ID);
    const double start = overlap_now(CLOCK_MONOTONIC);
    for (int call = 0; call < calls; ++call)
        sum.alone += overlap_call(library, send, recv, elements, 0, 0, &unused);
    sum.processors = (overlap_now(CLOCK_PROCESS_CPUTIME_ID) - used) /
                     (overlap_now(CLOCK_MONOTONIC) - start) * calls;
    double alone = sum.alone / calls;
    library->add(&alone, 1);
    alone /= library->ranks;
    for (int call = 0; call < calls; ++call)
        sum.both += overlap_call(library, send, recv, elements, alone, 0, &sum.computing);
    library->barrier();
    const long turns = overlap_compute_for(alone * 4) / 4 + 1;
    for (int call = 0; call < calls; ++call) {
        library->barrier();
        sum.turns += overlap_turns(turns);
    }
    for (int call = 0; call < calls; ++call)
        sum.bothTurns += overlap_call(library, send, recv, elements, 0, turns, &unused);
    double values[6] = {sum.alone, sum.processors, sum.computing,
                        sum.both,  sum.turns,      sum.bothTurns};
    library->add(values, 6);
    const double samples = (double)calls * library->ranks;
    const OverlapTimes mean = {values[0] / samples, values[1] / samples, values[2] / samples,
                               values[3] / samples, values[4] / samples, values[5] / samples};
    return mean;
}

static double overlap_share(double both, double computing, double alone) {
    const double share = 100 - (both - computing) / alone * 100;
    return share > 0 ? share : 0;
}

/* Rank 0: one JSON line. */
static void overlap_print(const OverlapTimes* times, size_t bytes) {
    printf(
        "{\"bytes\": %zu, \"alone_us\": %.3f, \"processors\": %.3f, \"computing_us\": %.3f, "
        "\"both_us\": %.3f, \"overlap\": %.2f, \"overlap_of_turns\": %.2f}\n",
        bytes, 1e6 * times->alone, times->processors, 1e6 * times->computing, 1e6 * times->both,
        overlap_share(times->both, times->computing, times->alone),
        overlap_share(times->bothTurns, times->turns, times->alone));
    fflush(stdout);
}

#endif
