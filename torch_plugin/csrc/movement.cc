#include <memory>
#include <utility>

#include "torch_plugin/csrc/backend.hpp"

namespace isthmus::glue {
namespace {

const at::Tensor& onlyOne(const std::vector<at::Tensor>& tensors, const char* operation) {
    TORCH_CHECK(tensors.size() == 1, "isthmus: ", operation, " takes one tensor, got ",
                tensors.size());
    return tensors[0];
}

void checkTypes(const std::vector<at::Tensor>& tensors, const at::Tensor& like,
                const char* operation) {
    for (const at::Tensor& tensor : tensors) checkSameType(like, tensor, operation);
}

/// A list that only the root has: empty, or one empty list, elsewhere.
const std::vector<at::Tensor>& rootList(const std::vector<std::vector<at::Tensor>>& lists,
                                        bool isRoot, int ranks, const char* operation) {
    static const auto* const none = new std::vector<at::Tensor>();
    if (!isRoot) {
        TORCH_CHECK_VALUE(lists.empty() || (lists.size() == 1 && lists[0].empty()),
                          "isthmus: ", operation, ": only the root may pass a list of tensors");
        return *none;
    }
    TORCH_CHECK_VALUE(lists.size() == 1 && static_cast<int>(lists[0].size()) == ranks,
                      "isthmus: ", operation,
                      ": the root needs one list with a tensor for each of the ", ranks, " ranks");
    return lists[0];
}

}  // namespace

Backend::WorkPtr Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
    Call call = begin("isthmus:broadcast", c10d::OpType::BROADCAST, options);
    const at::Tensor& tensor = onlyOne(tensors, call.operation());
    checkRoot(options.rootRank, call.operation());
    const bool isRoot = options.rootRank == rank_;
    const DenseView view(tensor, isRoot ? DenseView::Use::kRead : DenseView::Use::kWrite, call);
    const Elements how = movedAs(tensor.scalar_type());
    call.inputs = call.outputs = tensors;
    call.start =
        [view, how, count = how.of(tensor.numel()), root = static_cast<int>(options.rootRank)](
            isthmusComm_t comm, const isthmusCallOptions_t* limits, isthmusRequest_t* request) {
            return isthmusBroadcast(view.data(), view.data(), count, how.type, root, comm, limits,
                                    request);
        };
    if (!isRoot && view.isCopy()) call.writeBack = [view] { view.writeBack(); };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::allgather(TensorLists& outputs, Tensors& inputs,
                                    const c10d::AllgatherOptions& options) {
    Call call = begin("isthmus:all_gather", c10d::OpType::ALLGATHER, options);
    call.mayMixHost = true;  // outputs elsewhere than the input, as torch's NCCL backend has it
    const at::Tensor& input = onlyOne(inputs, call.operation());
    TORCH_CHECK(outputs.size() == 1 && static_cast<int>(outputs[0].size()) == size_,
                "isthmus: all_gather needs one list with an output for each of the ", size_,
                " ranks");
    const Tensors& list = outputs[0];
    checkTypes(list, input, call.operation());
    const std::int64_t own = list[static_cast<std::size_t>(rank_)].numel();
    TORCH_CHECK_VALUE(own == input.numel(), "isthmus: all_gather: the input has ", input.numel(),
                      " elements, output ", rank_, " has ", own);
    const DenseView from(input, DenseView::Use::kRead, call);
    const PackedList to(list, DenseView::Use::kWrite, call);
    const Elements how = movedAs(input.scalar_type());
    const bool areEqual = to.areEqual();
    const std::int64_t ownPart =
        areEqual ? static_cast<std::int64_t>(input.nbytes()) * rank_ : kNeverInPlace;
    const at::Tensor source = apartFrom(from.dense(), to.dense(), ownPart);
    const auto counts = to.counts(how);
    call.inputs = inputs;
    call.outputs = list;
    call.start = [to, source, how, counts, areEqual, own = how.of(own)](
                     isthmusComm_t comm, const isthmusCallOptions_t* limits,
                     isthmusRequest_t* request) {
        if (areEqual) {
            return isthmusAllGather(addressOf(source), to.data(), own, how.type, comm, limits,
                                    request);
        }
        return isthmusAllGatherV(addressOf(source), own, to.data(), counts.data(), nullptr,
                                 how.type, comm, limits, request);
    };
    if (to.isCopy()) call.writeBack = [to] { to.writeBack(); };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                          const c10d::AllgatherOptions& options) {
    Call call = begin("isthmus:_all_gather_base", c10d::OpType::_ALLGATHER_BASE, options);
    checkSameType(output, input, call.operation());
    TORCH_CHECK_VALUE(output.numel() == input.numel() * size_,
                      "isthmus: all_gather_into_tensor: the output has ", output.numel(),
                      " elements, wanted ", size_, " times the input's ", input.numel());
    const DenseView to(output, DenseView::Use::kWrite, call);
    const DenseView from(input, DenseView::Use::kRead, call);
    const std::int64_t ownPart = static_cast<std::int64_t>(input.nbytes()) * rank_;
    const at::Tensor source = apartFrom(from.dense(), to.dense(), ownPart);
    const Elements how = movedAs(input.scalar_type());
    call.inputs = {input};
    call.outputs = {output};
    call.start = [to, source, how, count = how.of(input.numel())](
                     isthmusComm_t comm, const isthmusCallOptions_t* limits,
                     isthmusRequest_t* request) {
        return isthmusAllGather(addressOf(source), to.data(), count, how.type, comm, limits,
                                request);
    };
    if (to.isCopy()) call.writeBack = [to] { to.writeBack(); };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) {
    TORCH_CHECK_VALUE(!inputs.empty(), "isthmus: all_gather_coalesced: no inputs");
    TORCH_CHECK_VALUE(static_cast<int>(outputs.size()) == size_,
                      "isthmus: all_gather_coalesced: output lists for ", outputs.size(), " of ",
                      size_, " ranks");
    for (const Tensors& list : outputs) {
        TORCH_CHECK_VALUE(list.size() == inputs.size(),
                          "isthmus: all_gather_coalesced: ", list.size(), " outputs for ",
                          inputs.size(), " inputs");
    }
    Call call = begin("isthmus:all_gather", c10d::OpType::ALLGATHER_COALESCED, options);
    const PackedList from(inputs, DenseView::Use::kRead, call);
    // One call for all: rank by rank, each rank's tensors one after another.
    Tensors all;
    for (const Tensors& list : outputs) {
        for (std::size_t index = 0; index < list.size(); ++index) {
            TORCH_CHECK_VALUE(list[index].numel() == inputs[index].numel(),
                              "isthmus: all_gather_coalesced: output ", index, " has ",
                              list[index].numel(), " elements, the input ", inputs[index].numel());
        }
        all.insert(all.end(), list.begin(), list.end());
    }
    checkTypes(all, inputs[0], call.operation());
    const PackedList to(all, DenseView::Use::kWrite, call);
    const Elements how = movedAs(inputs[0].scalar_type());
    const std::int64_t ownPart = static_cast<std::int64_t>(from.dense().nbytes()) * rank_;
    const at::Tensor source = apartFrom(from.dense(), to.dense(), ownPart);
    call.inputs = inputs;
    call.outputs = all;
    call.start = [to, source, how, count = how.of(source.numel())](
                     isthmusComm_t comm, const isthmusCallOptions_t* limits,
                     isthmusRequest_t* request) {
        return isthmusAllGather(addressOf(source), to.data(), count, how.type, comm, limits,
                                request);
    };
    if (to.isCopy()) call.writeBack = [to] { to.writeBack(); };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::gather(TensorLists& outputs, Tensors& inputs,
                                 const c10d::GatherOptions& options) {
    Call call = begin("isthmus:gather", c10d::OpType::GATHER, options);
    const at::Tensor& input = onlyOne(inputs, call.operation());
    checkRoot(options.rootRank, call.operation());
    const bool isRoot = options.rootRank == rank_;
    const Tensors& list = rootList(outputs, isRoot, size_, call.operation());
    checkTypes(list, input, call.operation());
    for (const at::Tensor& output : list) {
        TORCH_CHECK_VALUE(output.numel() == input.numel(), "isthmus: gather: an output has ",
                          output.numel(), " elements, the input ", input.numel());
    }
    const DenseView from(input, DenseView::Use::kRead, call);
    const Elements how = movedAs(input.scalar_type());
    std::shared_ptr<const PackedList> to;
    at::Tensor source = from.dense();
    if (isRoot) {
        to = std::make_shared<PackedList>(list, DenseView::Use::kWrite, call);
        source = apartFrom(source, to->dense(), static_cast<std::int64_t>(input.nbytes()) * rank_);
    }
    call.inputs = inputs;
    call.outputs = list;
    call.start =
        [to, source, how, count = how.of(input.numel()), root = static_cast<int>(options.rootRank)](
            isthmusComm_t comm, const isthmusCallOptions_t* limits, isthmusRequest_t* request) {
            return isthmusGather(addressOf(source), to ? to->data() : nullptr, count, how.type,
                                 root, comm, limits, request);
        };
    if (to && to->isCopy()) call.writeBack = [to] { to->writeBack(); };
    return issue(std::move(call));
}

#if ISTHMUS_TORCH_AT_LEAST(2, 14)
Backend::WorkPtr Backend::gather_into_tensor(at::Tensor& output, at::Tensor& input,
                                             const c10d::GatherOptions& options) {
    if (options.rootRank != rank_) {
        TensorLists none;
        Tensors one{input};
        return gather(none, one, options);
    }
    TORCH_CHECK_VALUE(output.numel() == input.numel() * size_,
                      "isthmus: gather_into_tensor: the output has ", output.numel(),
                      " elements, wanted ", size_, " times the input's ", input.numel());
    Call call = begin("isthmus:gather", c10d::OpType::GATHER, options);
    checkSameType(output, input, call.operation());
    const DenseView to(output, DenseView::Use::kWrite, call);
    const DenseView from(input, DenseView::Use::kRead, call);
    const at::Tensor source =
        apartFrom(from.dense(), to.dense(), static_cast<std::int64_t>(input.nbytes()) * rank_);
    const Elements how = movedAs(input.scalar_type());
    call.inputs = {input};
    call.outputs = {output};
    call.start = [to, source, how, count = how.of(input.numel()), root = rank_](
                     isthmusComm_t comm, const isthmusCallOptions_t* limits,
                     isthmusRequest_t* request) {
        return isthmusGather(addressOf(source), to.data(), count, how.type, root, comm, limits,
                             request);
    };
    if (to.isCopy()) call.writeBack = [to] { to.writeBack(); };
    return issue(std::move(call));
}
#endif

Backend::WorkPtr Backend::scatter(Tensors& outputs, TensorLists& inputs,
                                  const c10d::ScatterOptions& options) {
    Call call = begin("isthmus:scatter", c10d::OpType::SCATTER, options);
    const at::Tensor& output = onlyOne(outputs, call.operation());
    checkRoot(options.rootRank, call.operation());
    const bool isRoot = options.rootRank == rank_;
    const Tensors& list = rootList(inputs, isRoot, size_, call.operation());
    checkTypes(list, output, call.operation());
    for (const at::Tensor& input : list) {
        TORCH_CHECK_VALUE(input.numel() == output.numel(), "isthmus: scatter: an input has ",
                          input.numel(), " elements, the output ", output.numel());
    }
    const DenseView to(output, DenseView::Use::kWrite, call);
    const Elements how = movedAs(output.scalar_type());
    at::Tensor source;
    if (isRoot) {
        source = PackedList(list, DenseView::Use::kRead, call).dense();
        source = apartFrom(source, to.dense(), -static_cast<std::int64_t>(output.nbytes()) * rank_);
    }
    call.inputs = list;
    call.outputs = outputs;
    call.start = [to, source, how, count = how.of(output.numel()),
                  root = static_cast<int>(options.rootRank)](isthmusComm_t comm,
                                                             const isthmusCallOptions_t* limits,
                                                             isthmusRequest_t* request) {
        return isthmusScatter(source.defined() ? addressOf(source) : nullptr, to.data(), count,
                              how.type, root, comm, limits, request);
    };
    if (to.isCopy()) call.writeBack = [to] { to.writeBack(); };
    return issue(std::move(call));
}

}  // namespace isthmus::glue
