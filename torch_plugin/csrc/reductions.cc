#include <utility>

#include "torch_plugin/csrc/backend.hpp"

namespace isthmus::glue {

Backend::WorkPtr Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
    TORCH_CHECK(tensors.size() == 1, "isthmus: all_reduce takes one tensor, got ", tensors.size());
    if (tensors[0].layout() == at::kSparse) return allreduce_sparse(tensors, options);
    Call call = begin("isthmus:all_reduce", c10d::OpType::ALLREDUCE, options);
    const DenseView view(tensors[0], DenseView::Use::kReadWrite, call);
    const Reduction how = reductionOf(tensors[0].scalar_type(), options.reduceOp, call.operation());
    const at::Tensor input = operandOf(view.dense(), how, call);
    const std::size_t count = how.elements.of(input.numel());
    call.inputs = call.outputs = tensors;
    call.start = [view, input, how, count](isthmusComm_t comm, const isthmusCallOptions_t* limits,
                                           isthmusRequest_t* request) {
        return isthmusAllReduce(addressOf(input), view.data(), count, how.elements.type, how.op,
                                comm, limits, request);
    };
    if (view.isCopy()) call.writeBack = [view] { view.writeBack(); };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
    TORCH_CHECK(tensors.size() == 1, "isthmus: reduce takes one tensor, got ", tensors.size());
    Call call = begin("isthmus:reduce", c10d::OpType::REDUCE, options);
    checkRoot(options.rootRank, call.operation());
    const bool isRoot = options.rootRank == rank_;
    const DenseView view(tensors[0], isRoot ? DenseView::Use::kReadWrite : DenseView::Use::kRead,
                         call);
    const Reduction how = reductionOf(tensors[0].scalar_type(), options.reduceOp, call.operation());
    const at::Tensor input = operandOf(view.dense(), how, call);
    const std::size_t count = how.elements.of(input.numel());
    call.inputs = call.outputs = tensors;
    call.start = [view, input, how, count, isRoot, root = static_cast<int>(options.rootRank)](
                     isthmusComm_t comm, const isthmusCallOptions_t* limits,
                     isthmusRequest_t* request) {
        return isthmusReduce(addressOf(input), isRoot ? view.data() : nullptr, count,
                             how.elements.type, how.op, root, comm, limits, request);
    };
    if (isRoot && view.isCopy()) call.writeBack = [view] { view.writeBack(); };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                         const c10d::ReduceScatterOptions& options) {
    TORCH_CHECK(outputs.size() == 1 && inputs.size() == 1,
                "isthmus: reduce_scatter takes one output and one list of inputs");
    Call call = begin("isthmus:reduce_scatter", c10d::OpType::REDUCE_SCATTER, options);
    const Tensors& list = inputs[0];
    TORCH_CHECK_VALUE(static_cast<int>(list.size()) == size_,
                      "isthmus: reduce_scatter: ", list.size(), " inputs for ", size_, " ranks");
    checkSameType(outputs[0], list[0], call.operation());
    const at::Tensor& mine = list[static_cast<std::size_t>(rank_)];
    TORCH_CHECK_VALUE(outputs[0].numel() == mine.numel(),
                      "isthmus: reduce_scatter: the output has ", outputs[0].numel(),
                      " elements, input ", rank_, " has ", mine.numel());
    const DenseView output(outputs[0], DenseView::Use::kWrite, call);
    const PackedList packed(list, DenseView::Use::kRead, call);
    const Reduction how = reductionOf(outputs[0].scalar_type(), options.reduceOp, call.operation());
    const auto counts = packed.counts(how.elements);
    const bool areEqual = packed.areEqual();
    const std::int64_t ownPart =
        areEqual ? -static_cast<std::int64_t>(mine.nbytes()) * rank_ : kNeverInPlace;
    const at::Tensor source =
        operandOf(apartFrom(packed.dense(), output.dense(), ownPart), how, call);
    call.inputs = list;
    call.outputs = outputs;
    call.start = [output, source, how, counts, areEqual](isthmusComm_t comm,
                                                         const isthmusCallOptions_t* limits,
                                                         isthmusRequest_t* request) {
        if (areEqual) {
            return isthmusReduceScatter(addressOf(source), output.data(), counts[0],
                                        how.elements.type, how.op, comm, limits, request);
        }
        return isthmusReduceScatterV(addressOf(source), output.data(), counts.data(),
                                     how.elements.type, how.op, comm, limits, request);
    };
    if (output.isCopy()) call.writeBack = [output] { output.writeBack(); };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                               const c10d::ReduceScatterOptions& options) {
    Call call = begin("isthmus:_reduce_scatter_base", c10d::OpType::_REDUCE_SCATTER_BASE, options);
    checkSameType(output, input, call.operation());
    TORCH_CHECK_VALUE(input.numel() == output.numel() * size_,
                      "isthmus: reduce_scatter_tensor: the input has ", input.numel(),
                      " elements, wanted ", size_, " times the output's ", output.numel());
    const DenseView to(output, DenseView::Use::kWrite, call);
    const DenseView from(input, DenseView::Use::kRead, call);
    const Reduction how = reductionOf(input.scalar_type(), options.reduceOp, call.operation());
    const std::int64_t ownPart = -static_cast<std::int64_t>(output.nbytes()) * rank_;
    const at::Tensor source = operandOf(apartFrom(from.dense(), to.dense(), ownPart), how, call);
    const std::size_t count = how.elements.of(output.numel());
    call.inputs = {input};
    call.outputs = {output};
    call.start = [to, source, how, count](isthmusComm_t comm, const isthmusCallOptions_t* limits,
                                          isthmusRequest_t* request) {
        return isthmusReduceScatter(addressOf(source), to.data(), count, how.elements.type, how.op,
                                    comm, limits, request);
    };
    if (to.isCopy()) call.writeBack = [to] { to.writeBack(); };
    return issue(std::move(call));
}

}  // namespace isthmus::glue
