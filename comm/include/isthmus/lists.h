/* isthmus: calls over lists, of tensors and of neighbours. Included by isthmus.h. */
#ifndef ISTHMUS_LISTS_H
#define ISTHMUS_LISTS_H

#include <isthmus/isthmus.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- coalesced forms ----
 * One call over `tensors` tensors of one type: what the plain call would do to (sendbuffs[i],
 * recvbuffs[i], counts[i]) for each i, in place or not, zeros allowed; the arrays are copied by the
 * call and equal on every rank but for the pointers. Tensors of up to 64 KiB travel together,
 * packed unless they lie one after the other; larger ones go out at once, each by itself. Same bits
 * as the plain calls where those do not round differently by size. One request, one result: the
 * first failure. Nothing is started when any tensor is wrong. Unlike isthmusGroupStart and End,
 * which only start calls together, this is one call in the order of calls, and few messages. */
ISTHMUS_API isthmusResult_t isthmusAllReduceCoalesced(size_t tensors, const void* const* sendbuffs,
                                                      void* const* recvbuffs, const size_t* counts,
                                                      isthmusDataType_t datatype, isthmusRedOp_t op,
                                                      isthmusComm_t comm,
                                                      const isthmusCallOptions_t* options,
                                                      isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusBroadcastCoalesced(size_t tensors, const void* const* sendbuffs,
                                                      void* const* recvbuffs, const size_t* counts,
                                                      isthmusDataType_t datatype, int root,
                                                      isthmusComm_t comm,
                                                      const isthmusCallOptions_t* options,
                                                      isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusAllGatherCoalesced(size_t tensors, const void* const* sendbuffs,
                                                      void* const* recvbuffs, const size_t* counts,
                                                      isthmusDataType_t datatype,
                                                      isthmusComm_t comm,
                                                      const isthmusCallOptions_t* options,
                                                      isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusReduceScatterCoalesced(
    size_t tensors, const void* const* sendbuffs, void* const* recvbuffs, const size_t* recvcounts,
    isthmusDataType_t datatype, isthmusRedOp_t op, isthmusComm_t comm,
    const isthmusCallOptions_t* options, isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusAlltoAllCoalesced(size_t tensors, const void* const* sendbuffs,
                                                     void* const* recvbuffs, const size_t* counts,
                                                     isthmusDataType_t datatype, isthmusComm_t comm,
                                                     const isthmusCallOptions_t* options,
                                                     isthmusRequest_t* request);

/* ---- neighbours ----
 * MPI-3's exchange along the edges of a directed graph, of which every rank names its own: a block
 * to each destination, a block from each source. A rank may be there several times (its edges meet
 * in the order of the lists) and be its own neighbour. Messages, so only neighbours wait for each
 * other; not ordered with other calls, in order among themselves. Sizes of both ends agree. Buffers
 * do not overlap. Lists are copied by the call; NULL where there are none. */
typedef struct {
    int sources; /* how many */
    const int* source;
    int destinations;
    const int* destination;
} isthmusNeighbors_t;
/* `count` elements along every edge, packed in the order of the lists. */
ISTHMUS_API isthmusResult_t isthmusNeighborAlltoAll(const void* sendbuff, void* recvbuff,
                                                    size_t count, isthmusDataType_t datatype,
                                                    const isthmusNeighbors_t* neighbors,
                                                    isthmusComm_t comm,
                                                    const isthmusCallOptions_t* options,
                                                    isthmusRequest_t* request);
/* Counts and displacements by place in the lists; displacements may be NULL: packed. */
ISTHMUS_API isthmusResult_t isthmusNeighborAlltoAllV(
    const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
    const size_t* recvcounts, const size_t* rdispls, isthmusDataType_t datatype,
    const isthmusNeighbors_t* neighbors, isthmusComm_t comm, const isthmusCallOptions_t* options,
    isthmusRequest_t* request);

#ifdef __cplusplus
}
#endif
#endif
