#include <memory>
#include <utility>

#include "torch_plugin/csrc/backend.hpp"

namespace isthmus::glue {
namespace {

/// Tensors of one type as the C call over a list wants them. Holds what must stay alive.
struct TensorArrays {
    std::vector<at::Tensor> inputs;
    std::vector<DenseView> outputs;
    std::vector<const void*> sends;
    std::vector<void*> receives;
    std::vector<std::size_t> counts;

    void add(at::Tensor input, DenseView output, std::size_t count) {
        sends.push_back(addressOf(input));
        receives.push_back(output.data());
        counts.push_back(count);
        inputs.push_back(std::move(input));
        outputs.push_back(std::move(output));
    }
    void writeBack() const {
        for (const DenseView& output : outputs) {
            if (output.isCopy()) output.writeBack();
        }
    }
};

/// Places of tensors of the same type, in the order in which the types come: one C call each.
std::vector<std::vector<std::size_t>> placesByType(const std::vector<at::Tensor>& tensors) {
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t place = 0; place < tensors.size(); ++place) {
        auto group = groups.begin();
        while (group != groups.end() &&
               tensors[group->front()].scalar_type() != tensors[place].scalar_type())
            ++group;
        if (group == groups.end()) group = groups.emplace(groups.end());
        group->push_back(place);
    }
    return groups;
}

void checkLists(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                const char* operation) {
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "isthmus: ", operation, ": ", outputs.size(),
                      " outputs for ", inputs.size(), " inputs");
    for (std::size_t place = 0; place < inputs.size(); ++place)
        checkSameType(outputs[place], inputs[place], operation);
}

}  // namespace

Backend::WorkPtr Backend::allreduce_coalesced(Tensors& tensors,
                                              const c10d::AllreduceCoalescedOptions& options) {
    TORCH_CHECK_VALUE(!tensors.empty(),
                      "isthmus: all_reduce_coalesced requires non-empty tensor list");
    Call call = begin("isthmus:all_reduce", c10d::OpType::ALLREDUCE_COALESCED, options);
    call.admit(tensors);
    const Reduction how = reductionOf(tensors[0].scalar_type(), options.reduceOp, call.operation());
    const auto arrays = std::make_shared<TensorArrays>();
    for (const at::Tensor& tensor : tensors) {
        checkSameType(tensors[0], tensor, call.operation());
        DenseView view(tensor, DenseView::Use::kReadWrite, call);
        at::Tensor input = operandOf(view.dense(), how, call);
        const std::size_t count = how.elements.of(input.numel());
        arrays->add(std::move(input), std::move(view), count);
    }
    call.inputs = call.outputs = tensors;
    call.start = [arrays, how](isthmusComm_t comm, const isthmusCallOptions_t* limits,
                               isthmusRequest_t* request) {
        return isthmusAllReduceCoalesced(arrays->counts.size(), arrays->sends.data(),
                                         arrays->receives.data(), arrays->counts.data(),
                                         how.elements.type, how.op, comm, limits, request);
    };
    call.writeBack = [arrays] { arrays->writeBack(); };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::AllgatherOptions& options) {
    checkLists(outputs, inputs, "all_gather_into_tensor_coalesced");
    const auto groups = placesByType(inputs);
    c10d::AllgatherOptions each = options;
    each.asyncOp = options.asyncOp || groups.size() > 1;
    std::vector<Call> calls;
    for (const auto& group : groups) {
        Call& call =
            calls.emplace_back(begin("isthmus:_all_gather_base", c10d::OpType::COALESCED, each));
        const Elements how = movedAs(inputs[group.front()].scalar_type());
        const auto arrays = std::make_shared<TensorArrays>();
        for (const std::size_t place : group) {
            const at::Tensor& input = inputs[place];
            const at::Tensor& output = outputs[place];
            TORCH_CHECK_VALUE(output.numel() == input.numel() * size_,
                              "isthmus: all_gather_into_tensor: output ", place, " has ",
                              output.numel(), " elements, wanted ", size_, " times the input's ",
                              input.numel());
            DenseView to(output, DenseView::Use::kWrite, call);
            const DenseView from(input, DenseView::Use::kRead, call);
            const std::int64_t ownPart = static_cast<std::int64_t>(input.nbytes()) * rank_;
            at::Tensor source = apartFrom(from.dense(), to.dense(), ownPart);
            arrays->add(std::move(source), std::move(to), how.of(input.numel()));
            call.inputs.push_back(input);
            call.outputs.push_back(output);
        }
        call.start = [arrays, how](isthmusComm_t comm, const isthmusCallOptions_t* limits,
                                   isthmusRequest_t* request) {
            return isthmusAllGatherCoalesced(arrays->counts.size(), arrays->sends.data(),
                                             arrays->receives.data(), arrays->counts.data(),
                                             how.type, comm, limits, request);
        };
        call.writeBack = [arrays] { arrays->writeBack(); };
    }
    return issueTogether(std::move(calls));
}

Backend::WorkPtr Backend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
    checkLists(outputs, inputs, "reduce_scatter_tensor_coalesced");
    const auto groups = placesByType(inputs);
    c10d::ReduceScatterOptions each = options;
    each.asyncOp = options.asyncOp || groups.size() > 1;
    std::vector<Call> calls;
    for (const auto& group : groups) {
        Call& call = calls.emplace_back(
            begin("isthmus:_reduce_scatter_base", c10d::OpType::COALESCED, each));
        const Reduction how =
            reductionOf(inputs[group.front()].scalar_type(), options.reduceOp, call.operation());
        const auto arrays = std::make_shared<TensorArrays>();
        for (const std::size_t place : group) {
            const at::Tensor& input = inputs[place];
            const at::Tensor& output = outputs[place];
            TORCH_CHECK_VALUE(input.numel() == output.numel() * size_,
                              "isthmus: reduce_scatter_tensor: input ", place, " has ",
                              input.numel(), " elements, wanted ", size_, " times the output's ",
                              output.numel());
            DenseView to(output, DenseView::Use::kWrite, call);
            const DenseView from(input, DenseView::Use::kRead, call);
            const std::int64_t ownPart = -static_cast<std::int64_t>(output.nbytes()) * rank_;
            at::Tensor source = operandOf(apartFrom(from.dense(), to.dense(), ownPart), how, call);
            arrays->add(std::move(source), std::move(to), how.elements.of(output.numel()));
            call.inputs.push_back(input);
            call.outputs.push_back(output);
        }
        call.start = [arrays, how](isthmusComm_t comm, const isthmusCallOptions_t* limits,
                                   isthmusRequest_t* request) {
            return isthmusReduceScatterCoalesced(arrays->counts.size(), arrays->sends.data(),
                                                 arrays->receives.data(), arrays->counts.data(),
                                                 how.elements.type, how.op, comm, limits, request);
        };
        call.writeBack = [arrays] { arrays->writeBack(); };
    }
    return issueTogether(std::move(calls));
}

Backend::WorkPtr Backend::issueTogether(std::vector<Call> calls) {
    if (calls.size() == 1) return issue(std::move(calls.front()));
    std::vector<WorkPtr> parts;
    for (Call& call : calls) parts.push_back(issue(std::move(call)));
    return batch(c10d::OpType::COALESCED, std::move(parts));
}

}  // namespace isthmus::glue
