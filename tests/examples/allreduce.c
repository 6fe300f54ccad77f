/* Every rank adds up everybody's numbers, in memory that the ranks of one machine share.
 *
 *   cc allreduce.c $(pkg-config --cflags --libs isthmus) -o allreduce && isthmus run -n 4
 * ./allreduce */
#include <isthmus/isthmus.h>
#include <stdio.h>
#include <stdlib.h>

enum { kElements = 100000 };

static void check(isthmusResult_t result, const char* what) {
    if (result == isthmusSuccess) return;
    fprintf(stderr, "%s: %s: %s\n", what, isthmusGetErrorString(result), isthmusGetLastError(NULL));
    exit(1);
}

/* Rank r gives r + i at place i, so place i holds the sum of the ranks plus ranks * i. */
static int countWrong(const float* values, int ranks) {
    int wrong = 0;
    for (int i = 0; i < kElements; ++i) {
        const float expected = (float)(ranks * (ranks - 1) / 2) + (float)ranks * (float)(i % 100);
        if (values[i] != expected) ++wrong;
    }
    return wrong;
}

int main(void) {
    isthmusComm_t comm = NULL;
    check(isthmusCommInitEnv(&comm, NULL), "joining the job");
    int rank = 0;
    int ranks = 0;
    check(isthmusCommUserRank(comm, &rank), "rank");
    check(isthmusCommCount(comm, &ranks), "ranks");

    void* memory = NULL;
    check(isthmusMemAlloc(&memory, kElements * sizeof(float)), "memory");
    float* values = memory;
    for (int i = 0; i < kElements; ++i) values[i] = (float)(rank + i % 100);

    /* Started here and waited for below: time for work of one's own in between. */
    isthmusRequest_t request = NULL;
    check(isthmusAllReduce(values, values, kElements, isthmusFloat32, isthmusSum, comm, NULL,
                           &request),
          "all-reduce");
    check(isthmusWait(&request, -1), "waiting for the all-reduce");

    int wrong = countWrong(values, ranks);
    /* The worst of all ranks; a call without a request returns when it is done. */
    check(isthmusAllReduce(&wrong, &wrong, 1, isthmusInt32, isthmusMax, comm, NULL, NULL),
          "comparing");
    if (rank == 0) {
        printf("%d ranks added %d numbers: %s\n", ranks, kElements, wrong == 0 ? "right" : "WRONG");
    }
    check(isthmusMemFree(memory), "giving memory back");
    check(isthmusCommDestroy(comm), "leaving");
    return wrong == 0 ? 0 : 1;
}
