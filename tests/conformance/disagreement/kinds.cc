#include "tests/conformance/disagreement/kinds.hpp"

#include <array>
#include <utility>

#include <isthmus/lists.h>

namespace isthmus::test {
namespace {

constexpr std::size_t kCount = 4096;
constexpr isthmusDataType_t kF32 = isthmusFloat32;

Call allReduce(std::size_t count = kCount, isthmusDataType_t type = kF32,
               isthmusRedOp_t op = isthmusSum) {
    return [=](Caller& me) {
        return isthmusAllReduce(me.input.data(), me.output.data(), count, type, op, me.comm,
                                &me.options, nullptr);
    };
}

Call reduce(int root, isthmusRedOp_t op = isthmusSum) {
    return [=](Caller& me) {
        return isthmusReduce(me.input.data(), me.output.data(), kCount, kF32, op, root, me.comm,
                             &me.options, nullptr);
    };
}

Call broadcast(int root, std::size_t count = kCount, isthmusDataType_t type = kF32) {
    return [=](Caller& me) {
        return isthmusBroadcast(me.input.data(), me.output.data(), count, type, root, me.comm,
                                &me.options, nullptr);
    };
}

Call allGather(std::size_t count = 1024, isthmusDataType_t type = kF32) {
    return [=](Caller& me) {
        return isthmusAllGather(me.input.data(), me.output.data(), count, type, me.comm,
                                &me.options, nullptr);
    };
}

Call reduceScatter(std::size_t count = 1024, isthmusRedOp_t op = isthmusSum) {
    return [=](Caller& me) {
        return isthmusReduceScatter(me.input.data(), me.output.data(), count, kF32, op, me.comm,
                                    &me.options, nullptr);
    };
}

Call allToAll(std::size_t count = 1024) {
    return [=](Caller& me) {
        return isthmusAlltoAll(me.input.data(), me.output.data(), count, kF32, me.comm, &me.options,
                               nullptr);
    };
}

Call gather(int root, std::size_t count = 1024) {
    return [=](Caller& me) {
        return isthmusGather(me.input.data(), me.output.data(), count, kF32, root, me.comm,
                             &me.options, nullptr);
    };
}

Call scatter(int root, std::size_t count = 1024) {
    return [=](Caller& me) {
        return isthmusScatter(me.input.data(), me.output.data(), count, kF32, root, me.comm,
                              &me.options, nullptr);
    };
}

Call barrier() {
    return [](Caller& me) { return isthmusBarrier(me.comm, &me.options, nullptr); };
}

Call inTurn(Call first, Call second) {
    return [first = std::move(first), second = std::move(second)](Caller& me) {
        const isthmusResult_t result = first(me);
        return result == isthmusSuccess ? second(me) : result;
    };
}

Call nothing() {
    return [](Caller&) { return isthmusSuccess; };
}

using Counts = std::array<std::size_t, 4>;

Call allGatherV(Counts counts) {
    return [=](Caller& me) {
        return isthmusAllGatherV(me.input.data(), counts[me.rank], me.output.data(), counts.data(),
                                 nullptr, kF32, me.comm, &me.options, nullptr);
    };
}

Call reduceScatterV(Counts counts) {
    return [=](Caller& me) {
        return isthmusReduceScatterV(me.input.data(), me.output.data(), counts.data(), kF32,
                                     isthmusSum, me.comm, &me.options, nullptr);
    };
}

Call gatherV(Counts counts) {
    return [=](Caller& me) {
        return isthmusGatherV(me.input.data(), counts[me.rank], me.output.data(), counts.data(),
                              nullptr, kF32, 0, me.comm, &me.options, nullptr);
    };
}

Call scatterV(Counts counts) {
    return [=](Caller& me) {
        return isthmusScatterV(me.input.data(), counts.data(), nullptr, me.output.data(),
                               counts[me.rank], kF32, 0, me.comm, &me.options, nullptr);
    };
}

/// Everybody sends `sent` to every rank and wants `wanted` from everybody.
Call allToAllV(Counts sent, Counts wanted) {
    return [=](Caller& me) {
        return isthmusAlltoAllV(me.input.data(), sent.data(), nullptr, me.output.data(),
                                wanted.data(), nullptr, kF32, me.comm, &me.options, nullptr);
    };
}

Call allReduceOfList(const std::vector<std::size_t>& counts) {
    return [=](Caller& me) {
        std::vector<const void*> inputs;
        std::vector<void*> outputs;
        std::size_t at = 0;
        for (const std::size_t count : counts) {
            inputs.push_back(reinterpret_cast<float*>(me.input.data()) + at);
            outputs.push_back(reinterpret_cast<float*>(me.output.data()) + at);
            at += count;
        }
        return isthmusAllReduceCoalesced(counts.size(), inputs.data(), outputs.data(),
                                         counts.data(), kF32, isthmusSum, me.comm, &me.options,
                                         nullptr);
    };
}

void larger(const void* in, void* inout, std::size_t count, isthmusDataType_t, void*) {
    const auto* const theirs = static_cast<const float*>(in);
    auto* const ours = static_cast<float*>(inout);
    for (std::size_t i = 0; i < count; ++i) ours[i] = theirs[i] > ours[i] ? theirs[i] : ours[i];
}

Call allReduceByOwn(const char* name) {
    return [=](Caller& me) {
        isthmusRedOp_t op = isthmusSum;
        isthmusResult_t result = isthmusRedOpCreate(&op, name, larger, nullptr, 1, me.comm);
        if (result != isthmusSuccess) return result;
        result = allReduce(kCount, kF32, op)(me);
        isthmusRedOpDestroy(op, me.comm);
        return result;
    };
}

Call allReducePremultiplied() {
    return [](Caller& me) {
        float factor = 2;
        isthmusRedOp_t op = isthmusSum;
        isthmusResult_t result =
            isthmusRedOpCreatePreMulSum(&op, &factor, kF32, isthmusScalarHostImmediate, me.comm);
        if (result != isthmusSuccess) return result;
        result = allReduce(kCount, kF32, op)(me);
        isthmusRedOpDestroy(op, me.comm);
        return result;
    };
}

Call with(void (*set)(isthmusCallOptions_t&), Call call) {
    return [set, call = std::move(call)](Caller& me) {
        set(me.options);
        return call(me);
    };
}

Call send(std::size_t count, int peer, int tag) {
    return [=](Caller& me) {
        return isthmusSend(me.input.data(), count, kF32, peer, tag, me.comm, &me.options, nullptr);
    };
}

Call recv(std::size_t count, int peer, int tag) {
    return [=](Caller& me) {
        return isthmusRecv(me.output.data(), count, kF32, peer, tag, nullptr, me.comm, &me.options,
                           nullptr);
    };
}

/// What rank 0 does; the others nothing.
Call atFirst(Call call) {
    return
        [call = std::move(call)](Caller& me) { return me.rank == 0 ? call(me) : isthmusSuccess; };
}

void addCollectives(std::vector<Kind>& kinds) {
    const std::string sum = "all_reduce f32 x 4096 sum";
    const auto add = [&](const char* name, Call odd, const char* text) {
        kinds.push_back(
            {std::string("AllReduceAnd") + name, allReduce(), std::move(odd), sum, text});
    };
    add("Reduce", reduce(1), "reduce f32 x 4096 sum root 13");
    add("Broadcast", broadcast(0), "broadcast f32 x 4096 root 10");
    add("AllGather", allGather(), "all_gather f32 x 1024");
    add("ReduceScatter", reduceScatter(), "reduce_scatter f32 x 1024 sum");
    add("AllToAll", allToAll(), "all_to_all f32 x 1024");
    add("Gather", gather(0), "gather f32 x 1024 root 10");
    add("Scatter", scatter(3), "scatter f32 x 1024 root 11");
    add("Barrier", barrier(), "barrier");
    kinds.push_back({"BarrierAndNothingToReduce", barrier(), allReduce(0), "barrier",
                     "all_reduce f32 x 0 sum"});
    kinds.push_back({"BroadcastAndScatter", broadcast(0), scatter(0),
                     "broadcast f32 x 4096 root 10", "scatter f32 x 1024 root 10"});
    kinds.push_back({"AllGatherAndAllToAll", allGather(), allToAll(), "all_gather f32 x 1024",
                     "all_to_all f32 x 1024"});
    kinds.push_back({"GatherAndScatter", gather(0), scatter(0), "gather f32 x 1024 root 10",
                     "scatter f32 x 1024 root 10"});
    kinds.push_back({"AllGatherAndReduceScatter", allGather(), reduceScatter(),
                     "all_gather f32 x 1024", "reduce_scatter f32 x 1024 sum"});
}

void addCounts(std::vector<Kind>& kinds) {
    kinds.push_back({"Count", allReduce(), allReduce(1000), "all_reduce f32 x 4096 sum",
                     "all_reduce f32 x 1000 sum"});
    kinds.push_back({"CountOfOneAndTwo", allReduce(1), allReduce(2), "all_reduce f32 x 1 sum",
                     "all_reduce f32 x 2 sum"});
    kinds.push_back({"CountOfNothing", allReduce(1), allReduce(0), "all_reduce f32 x 1 sum",
                     "all_reduce f32 x 0 sum"});
    kinds.push_back({"CountOfAMillion", allReduce(1 << 20), allReduce((1 << 20) + 1),
                     "all_reduce f32 x 1048576 sum", "all_reduce f32 x 1048577 sum"});
    kinds.push_back({"CountBroadcast", broadcast(1, 100), broadcast(1, 101),
                     "broadcast f32 x 100 root 13", "broadcast f32 x 101 root 13"});
    kinds.push_back({"CountAllGather", allGather(100), allGather(99), "all_gather f32 x 100",
                     "all_gather f32 x 99"});
    kinds.push_back({"CountReduceScatter", reduceScatter(100), reduceScatter(101),
                     "reduce_scatter f32 x 100 sum", "reduce_scatter f32 x 101 sum"});
    kinds.push_back({"CountAllToAll", allToAll(100), allToAll(200), "all_to_all f32 x 100",
                     "all_to_all f32 x 200"});
    kinds.push_back({"CountGather", gather(3, 100), gather(3, 10), "gather f32 x 100 root 11",
                     "gather f32 x 10 root 11"});
    kinds.push_back({"CountScatter", scatter(3, 100), scatter(3, 10), "scatter f32 x 100 root 11",
                     "scatter f32 x 10 root 11"});
}

void addTypesAndOperations(std::vector<Kind>& kinds) {
    const std::string sum = "all_reduce f32 x 4096 sum";
    const auto add = [&](const char* name, isthmusDataType_t type, isthmusRedOp_t op,
                         const char* text) {
        kinds.push_back({name, allReduce(), allReduce(kCount, type, op), sum, text});
    };
    add("TypeOfOneWidth", isthmusInt32, isthmusSum, "all_reduce i32 x 4096 sum");
    add("TypeOfTwiceTheWidth", isthmusFloat64, isthmusSum, "all_reduce f64 x 4096 sum");
    kinds.push_back({"TypeOfHalves", allReduce(kCount, isthmusFloat16),
                     allReduce(kCount, isthmusBfloat16), "all_reduce f16 x 4096 sum",
                     "all_reduce bf16 x 4096 sum"});
    kinds.push_back({"TypeAllGather", allGather(10, isthmusUint8), allGather(10, isthmusInt8),
                     "all_gather u8 x 10", "all_gather i8 x 10"});
    kinds.push_back({"TypeBroadcast", broadcast(0), broadcast(0, kCount, isthmusUint32),
                     "broadcast f32 x 4096 root 10", "broadcast u32 x 4096 root 10"});
    add("OperationMax", kF32, isthmusMax, "all_reduce f32 x 4096 max");
    add("OperationAvg", kF32, isthmusAvg, "all_reduce f32 x 4096 avg");
    kinds.push_back({"OperationReduce", reduce(0), reduce(0, isthmusProd),
                     "reduce f32 x 4096 sum root 10", "reduce f32 x 4096 prod root 10"});
    kinds.push_back({"OperationReduceScatter", reduceScatter(10, isthmusMin),
                     reduceScatter(10, isthmusMax), "reduce_scatter f32 x 10 min",
                     "reduce_scatter f32 x 10 max"});
    kinds.push_back({"OperationPremultiplied", allReduce(), allReducePremultiplied(), sum,
                     "all_reduce f32 x 4096 premul_sum"});
    kinds.push_back({"OperationOfTheProgram", allReduce(), allReduceByOwn("larger"), sum,
                     "all_reduce f32 x 4096 user operation"});
    kinds.push_back({"OperationsOfTheProgram", allReduceByOwn("larger"), allReduceByOwn("smaller"),
                     "all_reduce f32 x 4096 user operation",
                     "the names of the user operations, or counts, differ"});
}

void addRootsAndOrder(std::vector<Kind>& kinds) {
    kinds.push_back({"RootBroadcast", broadcast(0), broadcast(1), "broadcast f32 x 4096 root 10",
                     "broadcast f32 x 4096 root 13"});
    kinds.push_back({"RootThatCalls", broadcast(0), broadcast(kOdd), "broadcast f32 x 4096 root 10",
                     "broadcast f32 x 4096 root 12"});
    kinds.push_back({"RootReduce", reduce(0), reduce(3), "reduce f32 x 4096 sum root 10",
                     "reduce f32 x 4096 sum root 11"});
    kinds.push_back({"RootGather", gather(1), gather(3), "gather f32 x 1024 root 13",
                     "gather f32 x 1024 root 11"});
    kinds.push_back({"RootScatter", scatter(1), scatter(3), "scatter f32 x 1024 root 13",
                     "scatter f32 x 1024 root 11"});
    kinds.push_back({"OrderOfTwoKinds", inTurn(allReduce(), allGather()),
                     inTurn(allGather(), allReduce()), "all_reduce f32 x 4096 sum",
                     "all_gather f32 x 1024"});
    kinds.push_back({"OrderOfTwoRoots", inTurn(broadcast(0), broadcast(1)),
                     inTurn(broadcast(1), broadcast(0)), "broadcast f32 x 4096 root 10",
                     "broadcast f32 x 4096 root 13"});
    // What comes after each kind is a barrier: see the test.
    kinds.push_back(
        {"OneCallLess", allReduce(), nothing(), "all_reduce f32 x 4096 sum", "barrier"});
    kinds.push_back(
        {"OneCallMore", nothing(), reduce(1), "barrier", "reduce f32 x 4096 sum root 13"});
}

void addBlocks(std::vector<Kind>& kinds) {
    const Counts usual = {3, 5, 7, 9};
    const Counts swapped = {5, 3, 7, 9};
    const char* const hint = "the sizes of single blocks differ";
    kinds.push_back({"BlocksAllGather", allGatherV(usual), allGatherV(swapped),
                     "all_gather f32 x 24 in blocks of given sizes", hint});
    kinds.push_back({"BlocksAndEqualOnes", allGather(6), allGatherV(usual), "all_gather f32 x 6",
                     "all_gather f32 x 24 in blocks of given sizes"});
    kinds.push_back({"BlocksReduceScatter", reduceScatterV(usual), reduceScatterV(swapped),
                     "reduce_scatter f32 x 24 in blocks of given sizes sum", hint});
    kinds.push_back({"BlocksGather", gatherV(usual), gatherV(swapped),
                     "gather f32 x 24 in blocks of given sizes root 10", hint});
    kinds.push_back({"BlocksScatter", scatterV(usual), scatterV(swapped),
                     "scatter f32 x 24 in blocks of given sizes root 10", hint});
    const Counts same = {4, 4, 4, 4};
    kinds.push_back({"BlocksAllToAllAndEqualOnes", allToAll(4), allToAllV(same, same),
                     "all_to_all f32 x 4", "all_to_all f32 x counts"});
    kinds.push_back({"BlocksAllToAllOfOtherSizes", allToAllV(same, same),
                     allToAllV({3, 4, 4, 4}, same), "rank 12 (", "with 12 bytes for rank 10 ("});
    kinds.push_back({"BlocksAllToAllLarge",
                     allToAllV({90000, 90000, 90000, 90000}, {90000, 90000, 90000, 90000}),
                     allToAllV({90000, 90000, 90000, 90000}, {90000, 80000, 90000, 90000}),
                     "with 360000 bytes for rank 12 (", "with 320000 bytes from it"});
    kinds.push_back({"BlocksAllToAllNoneSent", allToAllV(same, same), allToAllV({4, 0, 4, 4}, same),
                     "with 0 bytes for rank 13 (", "with 16 bytes from it"});
    kinds.push_back({"BlocksAllToAllNoneWanted", allToAllV(same, same),
                     allToAllV(same, {4, 4, 4, 0}), "with 16 bytes for rank 12 (",
                     "with 0 bytes from it"});
}

void addForms(std::vector<Kind>& kinds) {
    const std::string sum = "all_reduce f32 x 4096 sum";
    kinds.push_back({"ListAndWhole", allReduce(), allReduceOfList({4000, 96}), sum,
                     "all_reduce f32 x 4096 in a list sum"});
    kinds.push_back({"ListOfOtherSizes", allReduceOfList({4000, 96}), allReduceOfList({96, 4000}),
                     "all_reduce f32 x 4096 in a list sum", "the sizes of single blocks differ"});
    kinds.push_back({"ListOfMore", allReduceOfList({4000, 96}), allReduceOfList({4000, 90, 6}),
                     "all_reduce f32 x 4096 in a list sum", "the sizes of single blocks differ"});
    kinds.push_back({"OptionDeterministic", allReduce(),
                     with([](auto& options) { options.deterministic = 1; }, allReduce()), sum,
                     "all_reduce f32 x 4096 sum deterministic"});
    kinds.push_back({"OptionAlgorithm", allReduce(),
                     with([](auto& options) { options.algorithm = "doubling"; }, allReduce()),
                     "all_reduce f32 x 4096 sum by ", "all_reduce f32 x 4096 sum by doubling"});
}

void addMessages(std::vector<Kind>& kinds) {
    kinds.push_back(
        {"MessageOfMore", atFirst(recv(10, kOdd, 5)), send(11, 0, 5), "40 bytes", "44 bytes"});
    kinds.push_back({"MessageOfLess", atFirst(recv(100000, kOdd, 5)), send(90000, 0, 5),
                     "400000 bytes", "360000 bytes"});
    kinds.push_back(
        {"MessageOfNothing", atFirst(send(0, kOdd, 0)), recv(1, 0, 0), " 0 bytes", "4 bytes"});
}

}  // namespace

std::vector<Kind> allKinds() {
    std::vector<Kind> kinds;
    addCollectives(kinds);
    addCounts(kinds);
    addTypesAndOperations(kinds);
    addRootsAndOrder(kinds);
    addBlocks(kinds);
    addForms(kinds);
    addMessages(kinds);
    return kinds;
}

}  // namespace isthmus::test
