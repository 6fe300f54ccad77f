#include <utility>

#include "torch_plugin/csrc/backend.hpp"

namespace isthmus::glue {
namespace {

/// Elements of each part of the first dimension of `tensor`, as all_to_all_single splits it.
std::vector<std::int64_t> splitElements(const at::Tensor& tensor,
                                        const std::vector<std::int64_t>& splits, int ranks,
                                        const char* which) {
    const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
    const std::int64_t perRow = rows == 0 ? 0 : tensor.numel() / rows;
    if (splits.empty()) {
        TORCH_CHECK_VALUE(rows % ranks == 0, "isthmus: all_to_all_single: the ", which, "'s ", rows,
                          " rows do not divide by the ", ranks, " ranks; pass split sizes");
        return std::vector<std::int64_t>(static_cast<std::size_t>(ranks), rows / ranks * perRow);
    }
    TORCH_CHECK_VALUE(static_cast<int>(splits.size()) == ranks,
                      "isthmus: all_to_all_single: ", splits.size(), " ", which, " splits for ",
                      ranks, " ranks");
    std::int64_t total = 0;
    std::vector<std::int64_t> elements;
    for (const std::int64_t split : splits) {
        TORCH_CHECK_VALUE(split >= 0, "isthmus: all_to_all_single: a negative ", which, " split");
        total += split;
        elements.push_back(split * perRow);
    }
    TORCH_CHECK_VALUE(total == rows, "isthmus: all_to_all_single: the ", which,
                      " splits add up to ", total, " rows of ", rows);
    return elements;
}

std::vector<std::size_t> libraryCounts(const std::vector<std::int64_t>& elements,
                                       const Elements& how) {
    std::vector<std::size_t> counts;
    for (const std::int64_t count : elements) counts.push_back(how.of(count));
    return counts;
}

}  // namespace

Backend::WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                        std::vector<std::int64_t>& outputSplits,
                                        std::vector<std::int64_t>& inputSplits,
                                        const c10d::AllToAllOptions& options) {
    Call call = begin("isthmus:all_to_all", c10d::OpType::ALLTOALL_BASE, options);
    call.admit({output, input});
    checkSameType(output, input, call.operation());
    const Elements how = movedAs(input.scalar_type());
    // Whether splits were given must not depend on their values, or ranks would choose differently.
    const bool areEqual = outputSplits.empty() && inputSplits.empty();
    TORCH_CHECK_VALUE(!areEqual || input.numel() == output.numel(),
                      "isthmus: all_to_all_single: the input has ", input.numel(),
                      " elements, the output ", output.numel());
    const auto sendCounts = libraryCounts(splitElements(input, inputSplits, size_, "input"), how);
    const auto recvCounts =
        libraryCounts(splitElements(output, outputSplits, size_, "output"), how);
    const DenseView to(output, DenseView::Use::kWrite, call);
    const DenseView from(input, DenseView::Use::kRead, call);
    const at::Tensor source = apartFrom(from.dense(), to.dense(), areEqual ? 0 : kNeverInPlace);
    call.inputs = {input};
    call.outputs = {output};
    call.start = [to, source, how, sendCounts, recvCounts, areEqual](
                     isthmusComm_t comm, const isthmusCallOptions_t* limits,
                     isthmusRequest_t* request) {
        if (areEqual) {
            return isthmusAlltoAll(addressOf(source), to.data(), sendCounts[0], how.type, comm,
                                   limits, request);
        }
        return isthmusAlltoAllV(addressOf(source), sendCounts.data(), nullptr, to.data(),
                                recvCounts.data(), nullptr, how.type, comm, limits, request);
    };
    if (to.isCopy()) call.writeBack = [to] { to.writeBack(); };
    return issue(std::move(call));
}

Backend::WorkPtr Backend::alltoall(Tensors& outputs, Tensors& inputs,
                                   const c10d::AllToAllOptions& options) {
    Call call = begin("isthmus:all_to_all", c10d::OpType::ALLTOALL, options);
    TORCH_CHECK_VALUE(
        static_cast<int>(outputs.size()) == size_ && static_cast<int>(inputs.size()) == size_,
        "isthmus: all_to_all: ", inputs.size(), " inputs and ", outputs.size(), " outputs for ",
        size_, " ranks");
    const PackedList from(inputs, DenseView::Use::kRead, call);
    const PackedList to(outputs, DenseView::Use::kWrite, call);
    checkSameType(inputs[0], outputs[0], call.operation());
    const Elements how = movedAs(inputs[0].scalar_type());
    const at::Tensor source = apartFrom(from.dense(), to.dense(), kNeverInPlace);
    call.inputs = inputs;
    call.outputs = outputs;
    call.start = [to, source, how, sendCounts = from.counts(how), recvCounts = to.counts(how)](
                     isthmusComm_t comm, const isthmusCallOptions_t* limits,
                     isthmusRequest_t* request) {
        return isthmusAlltoAllV(addressOf(source), sendCounts.data(), nullptr, to.data(),
                                recvCounts.data(), nullptr, how.type, comm, limits, request);
    };
    if (to.isCopy()) call.writeBack = [to] { to.writeBack(); };
    return issue(std::move(call));
}

}  // namespace isthmus::glue
