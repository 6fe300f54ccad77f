/* isthmus: topology-aware collectives over shared memory and TCP. C99.
 *
 * Names and argument order are NCCL's with our prefix; two arguments come last instead of a stream:
 * `options` (NULL: defaults) and `request` (NULL: block until done; else return at once).
 *
 * Counts are elements, sizes are bytes, times are milliseconds. Ranks are the communicator's.
 *
 * Buffers: any memory; memory of isthmusMemAlloc is shared with the ranks of this node without
 * copies. A buffer belongs to the library from the call until the call is done, well or badly.
 *
 * Threads: any; calls on one communicator come in the same order on every rank.
 *
 * Errors: the code is returned, the text is isthmusGetLastError() on the same thread. */
#ifndef ISTHMUS_H
#define ISTHMUS_H

#include <stddef.h>
#include <stdint.h>

#define ISTHMUS_MAJOR 0
#define ISTHMUS_MINOR 1
#define ISTHMUS_PATCH 0
#define ISTHMUS_VERSION_CODE 100 /* major * 10000 + minor * 100 + patch */

#if defined(__GNUC__)
#define ISTHMUS_API __attribute__((visibility("default")))
#else
#define ISTHMUS_API
#endif

/* Any number may arrive in an enumeration, and one without a meaning is refused. For C++ only the
 * numbers of its enumerators' bits would be values of it, were its type not said. */
#ifdef __cplusplus
#define ISTHMUS_ANY_INT : int
extern "C" {
#else
#define ISTHMUS_ANY_INT
#endif

typedef enum ISTHMUS_ANY_INT {
    isthmusSuccess = 0,
    isthmusInvalidArgument = 1, /* the caller is wrong; nothing was started */
    isthmusMismatch = 2,        /* ranks disagree on the call */
    isthmusTimeout = 3,         /* a deadline passed */
    isthmusPeerLost = 4,        /* a process or its connection is gone */
    isthmusAborted = 5,         /* this rank or another gave up the communicator, or the receive */
    isthmusConfiguration = 6,   /* environment, options or authentication are wrong */
    isthmusResource = 7,        /* memory, space or descriptors ran out */
    isthmusUnsupported = 8,     /* a valid wish that this build or machine cannot serve */
    isthmusInternalError = 70   /* our fault: please report */
} isthmusResult_t;

typedef enum ISTHMUS_ANY_INT {
    isthmusInt8 = 0,
    isthmusChar = 0,
    isthmusUint8 = 1,
    isthmusInt16 = 2,
    isthmusUint16 = 3,
    isthmusInt32 = 4,
    isthmusInt = 4,
    isthmusUint32 = 5,
    isthmusInt64 = 6,
    isthmusUint64 = 7,
    isthmusFloat16 = 8,
    isthmusHalf = 8,
    isthmusBfloat16 = 9,
    isthmusFloat32 = 10,
    isthmusFloat = 10,
    isthmusFloat64 = 11,
    isthmusDouble = 11,
    isthmusBool = 12,      /* one byte, 0 or 1; sum and max are "or", prod and min are "and" */
    isthmusComplex64 = 13, /* two floats, real part first; sum and avg, nothing else */
    isthmusComplex128 = 14,
    isthmusFloat8e4m3 = 15, /* moved only: no reduction is defined on 8-bit floats */
    isthmusFloat8e5m2 = 16
} isthmusDataType_t;

typedef enum ISTHMUS_ANY_INT {
    isthmusSum = 0,
    isthmusProd = 1,
    isthmusMin = 2, /* a NaN anywhere makes the result NaN */
    isthmusMax = 3,
    isthmusAvg = 4, /* floating and complex types only */
    isthmusBand = 5,
    isthmusBor = 6,
    isthmusBxor = 7,
    isthmusMaxRedOp = 0x7fffffff /* room for operations that programs make */
} isthmusRedOp_t;

typedef struct isthmusComm* isthmusComm_t;
typedef struct isthmusRequest* isthmusRequest_t;

/* Any rank makes one, all ranks get the same bytes by any means; it carries the job's key. */
#define ISTHMUS_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[ISTHMUS_UNIQUE_ID_BYTES];
} isthmusUniqueId;

/* Structures begin with their size: later versions add fields. A size of 0 is refused. */

/* How a communicator is made. Begin with ISTHMUS_CONFIG_INITIALIZER; zero fields mean defaults. */
typedef struct {
    size_t size;            /* sizeof(isthmusConfig_t) */
    const char* name;       /* for messages and traces; copied; NULL: "comm" and a number */
    int64_t timeout_ms;     /* of one call, and of making it; 0 or less: ISTHMUS_TIMEOUT */
    int lazy;               /* 1: do not wait for the peers now but at the first call; no effect
                             * where they meet anyway: split, all-gather */
    const int* globalRanks; /* for messages: nranks ranks of the whole job; copied; NULL: same. A
                             * split refuses them: they follow from the parent's */
} isthmusConfig_t;
/* clang-format off */
#define ISTHMUS_CONFIG_INITIALIZER {sizeof(isthmusConfig_t), NULL, 0, 0, NULL}
/* clang-format on */

/* How one call behaves. Begin with ISTHMUS_CALL_OPTIONS_INITIALIZER; zero fields mean defaults. */
typedef struct {
    size_t size;           /* sizeof(isthmusCallOptions_t) */
    int64_t timeout_ms;    /* 0 or less: the communicator's */
    int priority;          /* 0 (first) to 7 (last), else the nearest; orders sending only */
    const char* name;      /* for messages; copied */
    const char* algorithm; /* one of `isthmus explain`, the same on all ranks; NULL: chosen. Of
                            * collectives: send and receive refuse one */
    int persistent;        /* 1: only prepare; the request is inactive until isthmusStart */
    int deterministic;     /* 1, on all ranks: same bits on any layout; 0: ISTHMUS_DETERMINISTIC */
    int oneRounding;       /* 1, on all ranks: 16-bit sums go as f32; 0: ISTHMUS_ONE_ROUNDING */
    int64_t wait_ms;       /* a call with a request first waits for its end, as one without does, up
                            * to this long: *request is NULL if it came, and the result is the
                            * call's. 0 or less: no. Not inside a group, a callback; not persistent */
} isthmusCallOptions_t;
/* clang-format off */
#define ISTHMUS_CALL_OPTIONS_INITIALIZER {sizeof(isthmusCallOptions_t), 0, 0, NULL, NULL, 0, 0, 0, 0}
/* clang-format on */

/* ---- version, errors ---- */
ISTHMUS_API isthmusResult_t isthmusGetVersion(int* version);
ISTHMUS_API const char* isthmusGetErrorString(isthmusResult_t result);
/* Text of the last failure on this thread; "" without one. `comm` is ignored (NCCL's signature). */
ISTHMUS_API const char* isthmusGetLastError(isthmusComm_t comm);

/* ---- communicators ---- */
ISTHMUS_API isthmusResult_t isthmusGetUniqueId(isthmusUniqueId* id);
/* Collective. Rank by unique id, NCCL's way. The id's maker stays alive until all have joined. */
ISTHMUS_API isthmusResult_t isthmusCommInitRank(isthmusComm_t* comm, int nranks, isthmusUniqueId id,
                                                int rank);
ISTHMUS_API isthmusResult_t isthmusCommInitRankConfig(isthmusComm_t* comm, int nranks,
                                                      isthmusUniqueId id, int rank,
                                                      const isthmusConfig_t* config);
/* Collective. Reads variables of isthmus run, torchrun, Open MPI, MPICH/PMI or Slurm; alone, it
 * makes a world of one rank. */
ISTHMUS_API isthmusResult_t isthmusCommInitEnv(isthmusComm_t* comm, const isthmusConfig_t* config);
/* Collective. `allgather` moves `bytes` bytes of each rank into recv[nranks * bytes] and returns 0
 * when it did; called a few times from inside this function, on this thread. */
typedef int (*isthmusAllGatherFn)(const void* send, void* recv, size_t bytes, void* context);
ISTHMUS_API isthmusResult_t isthmusCommInitAllGather(isthmusComm_t* comm, int nranks, int rank,
                                                     isthmusAllGatherFn allgather, void* context,
                                                     const isthmusConfig_t* config);
/* Collective. A key-value store of the caller. Functions return 0 when they did it, 1 for "not
 * there yet" (get after its limit; has), anything else for failure. `get` hands the bytes to `sink`
 * before it returns. The store must stay usable until the communicator is destroyed when
 * config->lazy is set. Its keys have one fixed prefix: each communicator wants a store, or a prefix
 * of the caller's, of its own. */
typedef void (*isthmusBytesSink)(void* sinkContext, const void* data, size_t bytes);
typedef struct {
    size_t size; /* sizeof(isthmusStoreCallbacks_t) */
    int (*set)(void* context, const char* key, const void* data, size_t bytes);
    int (*get)(void* context, const char* key, int64_t limit_ms, isthmusBytesSink sink,
               void* sinkContext);
    int (*has)(void* context, const char* key);
    int (*erase)(void* context, const char* key); /* may be NULL */
    void (*release)(void* context);    /* the last call of all, whether init succeeds or not, unless
                                          `size` is refused; may be NULL */
    const char* (*why)(void* context); /* text of this thread's last failure; may be NULL */
} isthmusStoreCallbacks_t;
ISTHMUS_API isthmusResult_t isthmusCommInitStore(isthmusComm_t* comm, int nranks, int rank,
                                                 const isthmusStoreCallbacks_t* store,
                                                 void* context, const isthmusConfig_t* config);
/* Collective over `comm`. Ranks of one color >= 0 form a communicator, ordered by (key, rank); with
 * a color < 0 *newcomm is NULL. */
ISTHMUS_API isthmusResult_t isthmusCommSplit(isthmusComm_t comm, int color, int key,
                                             isthmusComm_t* newcomm, const isthmusConfig_t* config);
/* Waits for this rank's calls in flight, with the communicator's timeout and a warning every ten
 * seconds, or at half time, that names who is missing; those left then fail. Returns the cause when
 * calls failed meanwhile. Not collective; isthmusCommAbort on another thread ends it. */
ISTHMUS_API isthmusResult_t isthmusCommFinalize(isthmusComm_t comm);
/* What isthmusCommFinalize does, then frees it. Its requests stay valid, and are done. */
ISTHMUS_API isthmusResult_t isthmusCommDestroy(isthmusComm_t comm);
/* Fails every call in flight, here and by a message elsewhere. Local, immediate, any thread. */
ISTHMUS_API isthmusResult_t isthmusCommAbort(isthmusComm_t comm);
/* The same, and every rank's error text ends with `reason` (UTF-8, copied; its first 3000 bytes
 * travel). NULL or "": no reason. */
ISTHMUS_API isthmusResult_t isthmusCommAbortWithReason(isthmusComm_t comm, const char* reason);
/* isthmusSuccess while healthy, else the first cause, whose text is then isthmusGetLastError(). */
ISTHMUS_API isthmusResult_t isthmusCommGetAsyncError(isthmusComm_t comm,
                                                     isthmusResult_t* asyncError);
ISTHMUS_API isthmusResult_t isthmusCommCount(isthmusComm_t comm, int* count);
ISTHMUS_API isthmusResult_t isthmusCommUserRank(isthmusComm_t comm, int* rank);
/* The node of each rank: nodes[nranks], from 0 by first rank. Completes a lazy communicator. */
ISTHMUS_API isthmusResult_t isthmusCommNodes(isthmusComm_t comm, int* nodes);
/* Bytes that this process sent to and received from other nodes since it started (payload, then
 * with frame headers). */
typedef struct {
    size_t size; /* sizeof(isthmusWireCounters_t) */
    uint64_t sent_payload, received_payload;
    uint64_t sent_total, received_total;
} isthmusWireCounters_t;
ISTHMUS_API isthmusResult_t isthmusWireCounters(isthmusComm_t comm,
                                                isthmusWireCounters_t* counters);
/* The same for each card that this process uses: bytes into and out of its TCP connections, what
 * went twice because a card was lost too. *count: room in cards[], then how many there are. */
typedef struct {
    char name[32]; /* of the interface, such as "eth0" */
    uint64_t sent, received;
} isthmusCardCounters_t;
ISTHMUS_API isthmusResult_t isthmusCardCounters(isthmusComm_t comm, isthmusCardCounters_t* cards,
                                                int* count);

/* ---- memory ---- */
/* Memory that the ranks of this node map; 64-byte aligned, zeros. Only isthmusMemFree frees it. */
ISTHMUS_API isthmusResult_t isthmusMemAlloc(void** pointer, size_t bytes);
ISTHMUS_API isthmusResult_t isthmusMemFree(void* pointer);

/* ---- collectives ----
 * In place: send == recv for all-reduce, broadcast, reduce, all-to-all; send == recv + rank * count
 * for all-gather, gather; recv == send + rank * count (elements) for reduce-scatter, scatter.
 * Otherwise buffers do not overlap. A count of 0 is legal and keeps its place in the order.
 * Processes that run with ISTHMUS_ONLY_SUMS=1 hold no data for all-reduces: their ranks pass null
 * buffers and add up what the others have, and an average is that of the others. */
ISTHMUS_API isthmusResult_t isthmusAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                             isthmusDataType_t datatype, isthmusRedOp_t op,
                                             isthmusComm_t comm,
                                             const isthmusCallOptions_t* options,
                                             isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                             isthmusDataType_t datatype, int root,
                                             isthmusComm_t comm,
                                             const isthmusCallOptions_t* options,
                                             isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusReduce(const void* sendbuff, void* recvbuff, size_t count,
                                          isthmusDataType_t datatype, isthmusRedOp_t op, int root,
                                          isthmusComm_t comm, const isthmusCallOptions_t* options,
                                          isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                             isthmusDataType_t datatype, isthmusComm_t comm,
                                             const isthmusCallOptions_t* options,
                                             isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusReduceScatter(const void* sendbuff, void* recvbuff,
                                                 size_t recvcount, isthmusDataType_t datatype,
                                                 isthmusRedOp_t op, isthmusComm_t comm,
                                                 const isthmusCallOptions_t* options,
                                                 isthmusRequest_t* request);
/* `count` elements to, and from, each rank. */
ISTHMUS_API isthmusResult_t isthmusAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                                            isthmusDataType_t datatype, isthmusComm_t comm,
                                            const isthmusCallOptions_t* options,
                                            isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusGather(const void* sendbuff, void* recvbuff, size_t count,
                                          isthmusDataType_t datatype, int root, isthmusComm_t comm,
                                          const isthmusCallOptions_t* options,
                                          isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusScatter(const void* sendbuff, void* recvbuff, size_t count,
                                           isthmusDataType_t datatype, int root, isthmusComm_t comm,
                                           const isthmusCallOptions_t* options,
                                           isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusBarrier(isthmusComm_t comm, const isthmusCallOptions_t* options,
                                           isthmusRequest_t* request);
/* v-forms: counts and displacements in elements, arrays of nranks entries, copied by the call. Recv
 * counts of all-gather and gather, send counts of scatter and counts of reduce-scatter are the same
 * on every rank (MPI wants them at the root only); sendcounts[q] here equals recvcounts[me] at q
 * for all-to-all. displs NULL: packed in rank order; of gather and scatter they count at the root
 * only. In place: send == recv + displs[rank] for gather, recv == send + displs[rank] for scatter,
 * at the root. */
ISTHMUS_API isthmusResult_t isthmusAllGatherV(const void* sendbuff, size_t sendcount,
                                              void* recvbuff, const size_t* recvcounts,
                                              const size_t* displs, isthmusDataType_t datatype,
                                              isthmusComm_t comm,
                                              const isthmusCallOptions_t* options,
                                              isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusReduceScatterV(const void* sendbuff, void* recvbuff,
                                                  const size_t* recvcounts,
                                                  isthmusDataType_t datatype, isthmusRedOp_t op,
                                                  isthmusComm_t comm,
                                                  const isthmusCallOptions_t* options,
                                                  isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusAlltoAllV(const void* sendbuff, const size_t* sendcounts,
                                             const size_t* sdispls, void* recvbuff,
                                             const size_t* recvcounts, const size_t* rdispls,
                                             isthmusDataType_t datatype, isthmusComm_t comm,
                                             const isthmusCallOptions_t* options,
                                             isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                           const size_t* recvcounts, const size_t* displs,
                                           isthmusDataType_t datatype, int root, isthmusComm_t comm,
                                           const isthmusCallOptions_t* options,
                                           isthmusRequest_t* request);
ISTHMUS_API isthmusResult_t isthmusScatterV(const void* sendbuff, const size_t* sendcounts,
                                            const size_t* displs, void* recvbuff, size_t recvcount,
                                            isthmusDataType_t datatype, int root,
                                            isthmusComm_t comm, const isthmusCallOptions_t* options,
                                            isthmusRequest_t* request);

/* ---- operations ----
 * *op sums like isthmusSum after every rank has multiplied its own input by its own *scalar, a
 * value of `datatype`: the type of the calls, floating and not complex. The products of 16-bit
 * types are rounded once more. Residence as NCCL says it: the scalar is read here, so that only
 * isthmusScalarHostImmediate can be served. Local; the op is of this communicator only. It may be
 * destroyed once the last call with it has returned. */
typedef enum ISTHMUS_ANY_INT {
    isthmusScalarDevice = 0,
    isthmusScalarHostImmediate = 1
} isthmusScalarResidence_t;
ISTHMUS_API isthmusResult_t isthmusRedOpCreatePreMulSum(isthmusRedOp_t* op, void* scalar,
                                                        isthmusDataType_t datatype,
                                                        isthmusScalarResidence_t residence,
                                                        isthmusComm_t comm);
/* MPI_Op_create: inout[i] = in[i] op inout[i] for `count` elements, any part of a call's; `in` is
 * of lower ranks. Associative. `datatype` is the call's and any will do: what elements mean is the
 * function's business. Not commutative (0): operands are combined in the order of ranks, at more
 * rounds between nodes. The function runs on whichever thread moves the call and must not call the
 * library; it and `context` last until the calls with it are done. Ranks know the op by its `name`,
 * which is copied; under another name the call is a mismatch. */
typedef void (*isthmusReduction)(const void* in, void* inout, size_t count,
                                 isthmusDataType_t datatype, void* context);
ISTHMUS_API isthmusResult_t isthmusRedOpCreate(isthmusRedOp_t* op, const char* name,
                                               isthmusReduction function, void* context,
                                               int commutative, isthmusComm_t comm);
ISTHMUS_API isthmusResult_t isthmusRedOpDestroy(isthmusRedOp_t op, isthmusComm_t comm);

/* ---- point to point ---- */
#define ISTHMUS_ANY_SOURCE (-1)
/* `tag` >= 0. A send meets the next receive of the same (source, tag); sizes must agree. Sends and
 * receives are not ordered with collectives nor with other tags or peers. */
ISTHMUS_API isthmusResult_t isthmusSend(const void* sendbuff, size_t count,
                                        isthmusDataType_t datatype, int peer, int tag,
                                        isthmusComm_t comm, const isthmusCallOptions_t* options,
                                        isthmusRequest_t* request);
/* `source` (may be NULL) is written before the request is done: the rank it came from. */
ISTHMUS_API isthmusResult_t isthmusRecv(void* recvbuff, size_t count, isthmusDataType_t datatype,
                                        int peer, int tag, int* source, isthmusComm_t comm,
                                        const isthmusCallOptions_t* options,
                                        isthmusRequest_t* request);
/* Calls between start and end return at once; blocking ones among them have finished when the
 * outermost isthmusGroupEnd returns, those with a request go on. They begin when they are called
 * (NCCL: at the end), on any communicators, in the order of their calls; each fails or not by
 * itself. The end gives the first failure, of calls that were refused inside too, as NCCL does; a
 * group of nothing succeeds. Per thread; nests. */
ISTHMUS_API isthmusResult_t isthmusGroupStart(void);
ISTHMUS_API isthmusResult_t isthmusGroupEnd(void);

/* ---- requests ----
 * Test and Wait return the call's result once it is done, free the request and set it to NULL; a
 * NULL request is done. *done tells Test's caller whether it was. Wait returns isthmusTimeout after
 * `timeout_ms` (< 0: until the call's own deadline) and leaves the request valid. */
ISTHMUS_API isthmusResult_t isthmusTest(isthmusRequest_t* request, int* done);
ISTHMUS_API isthmusResult_t isthmusWait(isthmusRequest_t* request, int64_t timeout_ms);
ISTHMUS_API isthmusResult_t isthmusWaitAll(size_t requests, isthmusRequest_t* array,
                                           int64_t timeout_ms);
/* Waits for one of them: *index is which, its result is returned, and it is NULL (a persistent one
 * inactive) afterwards. ISTHMUS_UNDEFINED and success when all are NULL or inactive;
 * ISTHMUS_UNDEFINED and isthmusTimeout after `timeout_ms`, as for Wait. */
#define ISTHMUS_UNDEFINED ((size_t)-1)
ISTHMUS_API isthmusResult_t isthmusWaitAny(size_t requests, isthmusRequest_t* array, size_t* index,
                                           int64_t timeout_ms);
/* Takes back a receive, as if it had never been called: Test and Wait then give isthmusAborted, and
 * the next receive of its (source, tag) gets the next message. isthmusInvalidArgument, and the
 * receive goes on, when it "has begun": its message has arrived or is arriving, or its sender was
 * told to write it (of more than 32 KiB a named source is told at once, from any source only when
 * announced). No other call can be cancelled: peers count on it from the moment of the call, and
 * one rank's leaving out a collective would shift the order of all that follow (MPI forbids it
 * too). */
ISTHMUS_API isthmusResult_t isthmusCancel(isthmusRequest_t request);
/* Persistent calls, as MPI-4's: any call with options->persistent and a request only checks its
 * arguments and chooses its plan. Start runs it, with what is in its buffers then; on all ranks in
 * the same order with the other calls. Test and Wait make it inactive again (done at once while it
 * is), never NULL; isthmusRequestFree ends it. isthmusInvalidArgument: not persistent, or started
 * and not waited for. Timeouts count from Start. StartAll starts in the order of the array. */
ISTHMUS_API isthmusResult_t isthmusStart(isthmusRequest_t request);
ISTHMUS_API isthmusResult_t isthmusStartAll(size_t requests, isthmusRequest_t* array);
/* Sets *active to 1 from the start of a request until its end was seen by a test or a wait, else 0:
 * tells a persistent call that failed with isthmusTimeout from a wait that was too short. */
ISTHMUS_API isthmusResult_t isthmusRequestActive(isthmusRequest_t request, int* active);
/* Runs `callback` once on the library's thread when the call is done (or at once on this one if it
 * already is). `text` is valid during the callback only. The callback must not wait for calls. */
typedef void (*isthmusCallback)(isthmusResult_t result, const char* text, void* context);
ISTHMUS_API isthmusResult_t isthmusOnComplete(isthmusRequest_t request, isthmusCallback callback,
                                              void* context);
/* Lets go of a request without waiting; the call goes on. */
ISTHMUS_API isthmusResult_t isthmusRequestFree(isthmusRequest_t* request);
/* Moves everything forward once, from this thread. For event loops of the caller: poll
 * isthmusEventFd, then this. */
ISTHMUS_API isthmusResult_t isthmusProgress(isthmusComm_t comm);
/* A descriptor that is readable when a call may have finished; owned by the library. */
ISTHMUS_API isthmusResult_t isthmusEventFd(isthmusComm_t comm, int* fd);

#ifdef __cplusplus
}
#endif

#include <isthmus/lists.h>

#endif
