#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "torch_plugin/csrc/backend.hpp"

namespace isthmus::glue {
namespace {

constexpr std::size_t kMostDimensions = 64;  // as torch's own dimension masks

/// What a rank tells the others before its indices and values: sparse and dense dimensions,
/// entries, then the sizes.
using Header = std::vector<std::int64_t>;
constexpr std::size_t kSizesAt = 3;
constexpr std::size_t kHeaderLength = kSizesAt + kMostDimensions;

Header headerOf(const at::Tensor& tensor) {
    Header header(kHeaderLength, -1);
    header[0] = tensor.sparse_dim();
    header[1] = tensor.dense_dim();
    header[2] = tensor._nnz();
    std::copy(tensor.sizes().begin(), tensor.sizes().end(), header.begin() + kSizesAt);
    return header;
}

/// Everything of one sparse sum that lives until it is done.
class SparseSum {
public:
    SparseSum(const at::Tensor& tensor, int rank, int ranks)
        : rank_(rank), ranks_(ranks), mine_(tensor.coalesce()), sum_(mine_) {}

    /// The first call: one of the group's own, in its order, so that a rank which calls something
    /// else there is found as in any other call.
    isthmusResult_t tellHeaders(isthmusComm_t comm, const isthmusCallOptions_t* limits,
                                isthmusRequest_t* request) {
        own_ = headerOf(mine_);
        headers_.resize(kHeaderLength * static_cast<std::size_t>(ranks_));
        return isthmusAllGather(own_.data(), headers_.data(), kHeaderLength, isthmusInt64, comm,
                                limits, request);
    }

    /// The other ones, one after another, once all headers are there. Every rank decides alike:
    /// from the headers.
    isthmusResult_t run(isthmusComm_t comm, const isthmusCallOptions_t* limits) {
        checkSizes();
        const auto indices = gatherParts(mine_.indices().contiguous(), headers_[0], comm, limits);
        if (indices.result != isthmusSuccess) return indices.result;
        const at::Tensor own = mine_.values().contiguous();
        const auto values = gatherParts(own, elementsPerEntry(), comm, limits);
        if (values.result != isthmusSuccess) return values.result;
        add(indices.parts, values.parts);
        return isthmusSuccess;
    }

    const at::Tensor& sum() const { return sum_; }

private:
    struct Gathered {
        isthmusResult_t result = isthmusSuccess;
        std::vector<at::Tensor> parts;  ///< rank by rank, one dimension
    };

    const std::int64_t* headerOfRank(int rank) const {
        return headers_.data() + static_cast<std::size_t>(rank) * kHeaderLength;
    }

    void checkSizes() const {
        for (int rank = 1; rank < ranks_; ++rank) {
            const std::int64_t* const one = headerOfRank(0);
            const std::int64_t* const other = headerOfRank(rank);
            TORCH_CHECK_VALUE(one[0] == other[0] && one[1] == other[1],
                              "sparse and dense dimensions differ: rank 0 has ", one[0], " and ",
                              one[1], ", rank ", rank, " has ", other[0], " and ", other[1]);
            TORCH_CHECK_VALUE(std::equal(one + kSizesAt, one + kHeaderLength, other + kSizesAt),
                              "sizes differ between rank 0 and rank ", rank);
        }
    }

    std::int64_t elementsPerEntry() const {
        std::int64_t elements = 1;
        for (std::int64_t size : mine_.values().sizes().slice(1)) elements *= size;
        return elements;
    }

    Gathered gatherParts(const at::Tensor& own, std::int64_t perEntry, isthmusComm_t comm,
                         const isthmusCallOptions_t* limits) const {
        const Elements how = movedAs(own.scalar_type());
        std::vector<std::int64_t> elements;
        std::vector<std::size_t> counts;
        std::int64_t total = 0;
        for (int rank = 0; rank < ranks_; ++rank) {
            elements.push_back(headerOfRank(rank)[2] * perEntry);
            counts.push_back(how.of(elements.back()));
            total += elements.back();
        }
        const at::Tensor all = at::empty({total}, own.options());
        Gathered gathered;
        gathered.result = isthmusAllGatherV(addressOf(own), counts[static_cast<std::size_t>(rank_)],
                                            addressOf(all), counts.data(), nullptr, how.type, comm,
                                            limits, nullptr);
        gathered.parts = all.split_with_sizes(elements);
        return gathered;
    }

    /// In the order of ranks, as gloo adds them: equal bits.
    void add(const std::vector<at::Tensor>& indices, const std::vector<at::Tensor>& values) {
        for (int rank = 0; rank < ranks_; ++rank) {
            const auto index = static_cast<std::size_t>(rank);
            const std::int64_t entries = headerOfRank(rank)[2];
            std::vector<std::int64_t> shape = mine_.values().sizes().vec();
            shape[0] = entries;
            const at::Tensor part = at::_sparse_coo_tensor_unsafe(
                indices[index].view({mine_.sparse_dim(), entries}), values[index].view(shape),
                mine_.sizes(), mine_.options().layout(at::kSparse), /*is_coalesced=*/true);
            sum_ = rank == 0 ? part : at::add(sum_, part);
        }
        sum_ = sum_.coalesce();
    }

    const int rank_;
    const int ranks_;
    const at::Tensor mine_;
    Header own_;
    Header headers_;
    at::Tensor sum_;
};

/// Waits for a call of `group`. What failed the group is the failure, and this thread's last error.
isthmusResult_t endOf(Work& work, Communicator& group) {
    try {
        work.wait(kNoTimeout);
        return isthmusSuccess;
    } catch (const c10::Error&) {
        isthmusResult_t cause = isthmusSuccess;
        static_cast<void>(
            group.with([&](isthmusComm_t comm) { return isthmusCommGetAsyncError(comm, &cause); }));
        if (cause == isthmusSuccess) throw;
        return cause;
    }
}

}  // namespace

Backend::WorkPtr Backend::allreduce_sparse(Tensors& tensors,
                                           const c10d::AllreduceOptions& options) {
    TORCH_CHECK(tensors.size() == 1, "isthmus: all_reduce takes one tensor, got ", tensors.size());
    const at::Tensor tensor = tensors[0];
    Call call = begin("isthmus:sparse_all_reduce", c10d::OpType::_ALLREDUCE_SPARSE, options);
    TORCH_CHECK(tensor.layout() == at::kSparse, "isthmus: ", call.operation(),
                ": a sparse COO tensor is wanted, got layout ", tensor.layout());
    TORCH_CHECK(tensor.device().is_cpu(), "isthmus: ", call.operation(), ": tensor is on ",
                tensor.device(), "; sparse tensors are added in host memory, move it with .cpu()");
    TORCH_CHECK_VALUE(options.reduceOp == c10d::ReduceOp::SUM, "isthmus: ", call.operation(),
                      ": sparse tensors can only be added (ReduceOp.SUM)");
    TORCH_CHECK_VALUE(static_cast<std::size_t>(tensor.dim()) <= kMostDimensions,
                      "isthmus: ", call.operation(), ": more than ", kMostDimensions,
                      " dimensions");
    const at::AutoDispatchBelowADInplaceOrView noGradient;
    const auto sum = std::make_shared<SparseSum>(tensor, rank_, size_);
    call.inputs = call.outputs = tensors;
    Call headers = call;
    headers.runsInCaller = false;
    headers.start = [sum](isthmusComm_t comm, const isthmusCallOptions_t* limits,
                          isthmusRequest_t* request) {
        return sum->tellHeaders(comm, limits, request);
    };
    const auto told = Work::issue(rank_, std::move(headers), communicator_);
    call.start = [sum, told, group = communicator_](
                     isthmusComm_t comm, const isthmusCallOptions_t* limits, isthmusRequest_t*) {
        if (const isthmusResult_t failed = endOf(*told, *group); failed != isthmusSuccess)
            return failed;
        const at::AutoDispatchBelowADInplaceOrView below;
        return sum->run(comm, limits);
    };
    call.writeBack = [sum, tensor] { plainCopy(tensor, sum->sum()); };
    return issueOnLane(std::move(call));
}

}  // namespace isthmus::glue
