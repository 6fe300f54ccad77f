#include "comm/communicator/packing.hpp"

#include <cstring>
#include <numeric>

#include "comm/communicator/call_check.hpp"
#include "comm/communicator/widened.hpp"
#include "comm/reduce/reducer.hpp"

namespace isthmus {

namespace {

bool isPacked(const std::vector<std::size_t>& counts, const std::vector<std::size_t>& places) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (counts[i] > 0 && places[i] != next) return false;
        next += counts[i];
    }
    return true;
}

std::size_t sumOf(const std::vector<std::size_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

template <typename Copy>
void forEachBlock(const std::vector<std::size_t>& counts, const std::vector<std::size_t>& places,
                  std::size_t scale, const Copy& copy) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] > 0) copy(places[i] * scale, next * scale, counts[i] * scale);
        next += counts[i];
    }
}

}  // namespace

std::shared_ptr<Work> callWithDisplacements(Communicator& communicator, CallRequest&& request,
                                            const CallOptions& options,
                                            const Displacements& displacements) {
    if (displacements.input.empty() && displacements.output.empty())
        return communicator.call(std::move(request), options);
    // Says what is wrong before counts that may be are used.
    if (!checkCall(request, communicator.rank(), communicator.ranks()).ok())
        return communicator.call(std::move(request), options);
    const bool isExchange = request.collective == Collective::kAllToAll;
    const auto inputCounts = isExchange ? request.counts.sent : request.counts.each;
    const auto outputCounts = isExchange ? request.counts.received : request.counts.each;
    const bool packsInput =
        !displacements.input.empty() && !isPacked(inputCounts, displacements.input);
    const bool packsOutput =
        !displacements.output.empty() && !isPacked(outputCounts, displacements.output);
    if (!packsInput && !packsOutput) return communicator.call(std::move(request), options);

    struct Copies {
        std::vector<std::byte> input;
        std::vector<std::byte> output;
    };
    auto copies = std::make_shared<Copies>();
    const std::size_t scale = bytesOf(request.type);
    if (packsInput && request.input != nullptr) {
        copies->input.resize(sumOf(inputCounts) * scale);
        forEachBlock(inputCounts, displacements.input, scale,
                     [&](std::size_t from, std::size_t to, std::size_t bytes) {
                         std::memcpy(copies->input.data() + to, request.input + from, bytes);
                     });
        request.input = copies->input.data();
    }
    std::byte* const target = request.output;
    if (packsOutput && target != nullptr) {
        copies->output.resize(sumOf(outputCounts) * scale);
        request.output = copies->output.data();
    }
    auto outer = std::make_shared<Work>();
    CallOptions started = options;
    started.isBlocking = false;
    const auto inner = communicator.call(std::move(request), started);
    inner->onComplete([outer, copies, target, outputCounts, displacements, scale,
                       packsOutput](const Status& status) {
        if (status.ok() && packsOutput) {
            forEachBlock(outputCounts, displacements.output, scale,
                         [&](std::size_t to, std::size_t from, std::size_t bytes) {
                             std::memcpy(target + to, copies->output.data() + from, bytes);
                         });
        }
        outer->complete(status);
    });
    if (options.isBlocking) (void)communicator.wait(*outer, options.patience).ok();
    return outer;
}

std::shared_ptr<Work> callPremultiplied(Communicator& communicator, CallRequest request,
                                        const CallOptions& options, double factor) {
    // A call that is refused has changed nothing.
    if (!communicator.prepare(request, options).ok())
        return communicator.call(std::move(request), options);
    request.isPremultiplied = true;
    if (communicator.isWidened(request, options))
        return callWidened(communicator, std::move(request), options, factor);
    if (communicator.onlySums(request)) return communicator.call(std::move(request), options);
    std::size_t elements = request.counts.uniform;
    if (request.collective == Collective::kReduceScatter) {
        const auto& each = request.counts.each;
        elements =
            each.empty() ? elements * static_cast<std::size_t>(communicator.ranks()) : sumOf(each);
    }
    auto copy = std::make_shared<std::vector<std::byte>>();
    std::byte* scaled = request.output;
    if (request.collective != Collective::kAllReduce) {
        copy->resize(elements * bytesOf(request.type));
        scaled = copy->data();
    }
    const void* const source = request.input;
    reduce(request.type, ReduceOp::kSum, scaled, {&source, 1}, elements, factor);
    request.input = scaled;
    auto work = communicator.call(std::move(request), options);
    work->onComplete([copy](const Status&) {});  // keeps it that long
    return work;
}

}  // namespace isthmus
