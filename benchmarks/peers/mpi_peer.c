/* Times MPI collectives the way `isthmus bench -I` does: warm-up, a barrier, back-to-back calls
 * with one clock reading after each, the slowest rank of each iteration. Rank 0 prints one JSON
 * line per size.
 *
 * usage: mpi_peer COLLECTIVE BYTES:WARMUPS:ITERATIONS...   (BYTES as nccl-tests counts: the whole
 * operand) */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int ranks;
static int rank;

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static int earlier(const void* one, const void* other) {
    const double left = *(const double*)one;
    const double right = *(const double*)other;
    return (left > right) - (left < right);
}

/* Random values, not zeros: zero pages and zero stores are faster than any other (and no
 * denormals). */
static void fill(float* buffer, size_t elements) {
    uint32_t state = 2463534242u + (uint32_t)rank;
    for (size_t index = 0; index < elements; ++index) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        buffer[index] = (float)(state % 1024) - 512.0f;
    }
}

/* Blocks of `isthmus bench all_to_all --uneven`: (2 ((i + j) mod P) + 1) / P of the even one. */
static int exchange_uneven(const float* send, float* recv, int block) {
    int counts[1024];
    int offsets[1024];
    int total = 0;
    if (ranks > 1024) return MPI_ERR_OTHER;
    for (int other = 0; other < ranks; ++other) {
        counts[other] = (int)((int64_t)block * (2 * ((rank + other) % ranks) + 1) / ranks);
        offsets[other] = total;
        total += counts[other];
    }
    return MPI_Alltoallv(send, counts, offsets, MPI_FLOAT, recv, counts, offsets, MPI_FLOAT,
                         MPI_COMM_WORLD);
}

static int call(const char* name, float* send, float* recv, int whole) {
    const int block = whole / ranks;
    if (strcmp(name, "all_reduce") == 0)
        return MPI_Allreduce(send, recv, whole, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (strcmp(name, "all_gather") == 0)
        return MPI_Allgather(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, MPI_COMM_WORLD);
    if (strcmp(name, "reduce_scatter") == 0)
        return MPI_Reduce_scatter_block(send, recv, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (strcmp(name, "all_to_all") == 0)
        return MPI_Alltoall(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, MPI_COMM_WORLD);
    if (strcmp(name, "uneven_all_to_all") == 0) return exchange_uneven(send, recv, block);
    if (strcmp(name, "broadcast") == 0) return MPI_Bcast(recv, whole, MPI_FLOAT, 0, MPI_COMM_WORLD);
    if (strcmp(name, "reduce") == 0)
        return MPI_Reduce(send, recv, whole, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (strcmp(name, "barrier") == 0) return MPI_Barrier(MPI_COMM_WORLD);
    return MPI_ERR_OTHER;
}

static int measure(const char* name, int warmups, int iterations, size_t bytes) {
    const int whole = (int)(bytes / sizeof(float));
    float* const send = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
    float* const recv = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
    double* const seconds = calloc((size_t)iterations, sizeof(double));
    if (send == NULL || recv == NULL || seconds == NULL) return 1;
    fill(send, (size_t)whole);
    fill(recv, (size_t)whole);
    for (int warmup = 0; warmup < warmups; ++warmup) {
        if (call(name, send, recv, whole) != MPI_SUCCESS) return 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now();
    double last = start;
    for (int iteration = 0; iteration < iterations; ++iteration) {
        if (call(name, send, recv, whole) != MPI_SUCCESS) return 1;
        const double at = now();
        seconds[iteration] = at - last;
        last = at;
    }
    const double mean = (last - start) / iterations;
    MPI_Allreduce(MPI_IN_PLACE, seconds, iterations, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
        qsort(seconds, (size_t)iterations, sizeof(double), earlier);
        printf(
            "{\"collective\": \"%s\", \"bytes\": %zu, \"mean_us\": %.3f, \"p50_us\": %.3f, "
            "\"p99_us\": %.3f, \"min_us\": %.3f, \"max_us\": %.3f}\n",
            name, bytes, 1e6 * mean, 1e6 * seconds[iterations / 2],
            1e6 * seconds[(size_t)(0.99 * (iterations - 1))], 1e6 * seconds[0],
            1e6 * seconds[iterations - 1]);
        fflush(stdout);
    }
    free(send);
    free(recv);
    free(seconds);
    return 0;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int failed = argc < 3;
    for (int index = 2; index < argc && !failed; ++index) {
        unsigned long long bytes = 0;
        int warmups = 0;
        int iterations = 0;
        failed = sscanf(argv[index], "%llu:%d:%d", &bytes, &warmups, &iterations) != 3 ||
                 iterations < 1 || measure(argv[1], warmups, iterations, (size_t)bytes) != 0;
    }
    if (failed && rank == 0)
        fprintf(stderr, "usage: mpi_peer COLLECTIVE BYTES:WARMUPS:ITERATIONS...\n");
    MPI_Finalize();
    return failed;
}
