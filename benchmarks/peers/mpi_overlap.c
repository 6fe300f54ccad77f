/* Overlap of MPI_Iallreduce with computing, as overlap.h measures it.
 *
 * usage: mpi_overlap BYTES:WARMUPS:CALLS... */
#include "overlap.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

static MPI_Request request;

static void begin(const float* send, float* recv, size_t elements) {
    MPI_Iallreduce(send, recv, (int)elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
}

static void finish(void) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void barrier(void) {
    MPI_Barrier(MPI_COMM_WORLD);
}

static void add(double* values, int count) {
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static int measure(const OverlapLibrary* library, const char* word) {
    unsigned long long bytes = 0;
    int warmups = 0;
    int calls = 0;
    if (sscanf(word, "%llu:%d:%d", &bytes, &warmups, &calls) != 3 || calls < 1) return 1;
    const size_t elements = bytes / sizeof(float);
    float* const send = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
    float* const recv = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
    if (send == NULL || recv == NULL) return 1;
    uint32_t state = 2463534242u + (uint32_t)library->rank;
    for (size_t index = 0; index < elements; ++index) {
        state = state * 1664525u + 1013904223u;
        send[index] = recv[index] = (float)(state >> 22) - 512.0f;
    }
    const OverlapTimes times = overlap_measure(library, send, recv, elements, warmups, calls);
    if (library->rank == 0) overlap_print(&times, bytes);
    free(send);
    free(recv);
    return 0;
}

int main(int argc, char** argv) {
    OverlapLibrary library = {0, 0, begin, finish, barrier, add};
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &library.ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &library.rank);
    int failed = argc < 2;
    for (int index = 1; index < argc && !failed; ++index) failed = measure(&library, argv[index]);
    if (failed && library.rank == 0) fprintf(stderr, "usage: mpi_overlap BYTES:WARMUPS:CALLS...\n");
    MPI_Finalize();
    return failed;
}
