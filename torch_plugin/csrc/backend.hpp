#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "torch_plugin/csrc/communicator.hpp"
#include "torch_plugin/csrc/lane.hpp"
#include "torch_plugin/csrc/tensor_order.hpp"
#include "torch_plugin/csrc/tensor_view.hpp"
#include "torch_plugin/csrc/torch_compat.hpp"
#include "torch_plugin/csrc/work.hpp"

namespace isthmus::glue {

/// A torch.distributed backend over the C API of the library: one per process group.
/// Thread: as torch's own backends: any, calls in the same order on every rank.
class Backend final : public c10d::Backend {
public:
    using Tensors = std::vector<at::Tensor>;
    using TensorLists = std::vector<Tensors>;
    using WorkPtr = c10::intrusive_ptr<c10d::Work>;

    Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks,
            GroupSettings settings);
    ~Backend() override = default;

    // ---- what it is ----
    const std::string getBackendName() const override { return "isthmus"; }
    c10::intrusive_ptr<Options> getBackendOptions() override;
    void setTimeout(std::chrono::milliseconds timeout) override;
    bool supportsCoalescing() const override { return true; }
    void startCoalescing() override;
    WorkPtr endCoalescing() override;
    void setSequenceNumberForGroup() override {}
    std::uint64_t getSequenceNumberForGroup() override { return sequence_.load(); }
    c10d::ErrorType getError() override;
    void abort() override;
    void shutdown() override;
    bool supportsTensorAlloc(c10::DeviceIndex deviceIndex) override;
    at::Tensor allocateTensor(long elements, at::TensorOptions options) override;
    std::shared_ptr<c10::Allocator> getMemAllocator() override;

    // ---- reductions ----
    WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
    WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
    WorkPtr allreduce_coalesced(Tensors& tensors,
                                const c10d::AllreduceCoalescedOptions& options) override;
    WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
    WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs,
                           const c10d::ReduceScatterOptions& options) override;
    WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                 const c10d::ReduceScatterOptions& options) override;
    WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::ReduceScatterOptions& options) override;

    // ---- movement ----
    WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
    WorkPtr allgather(TensorLists& outputs, Tensors& inputs,
                      const c10d::AllgatherOptions& options) override;
    WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                            const c10d::AllgatherOptions& options) override;
    WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                const c10d::AllgatherOptions& options) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) override;
    WorkPtr gather(TensorLists& outputs, Tensors& inputs,
                   const c10d::GatherOptions& options) override;
#if ISTHMUS_TORCH_AT_LEAST(2, 14)
    WorkPtr gather_into_tensor(at::Tensor& output, at::Tensor& input,
                               const c10d::GatherOptions& options) override;
#endif
    WorkPtr scatter(Tensors& outputs, TensorLists& inputs,
                    const c10d::ScatterOptions& options) override;
    WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                          std::vector<std::int64_t>& outputSplits,
                          std::vector<std::int64_t>& inputSplits,
                          const c10d::AllToAllOptions& options) override;
    WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                     const c10d::AllToAllOptions& options) override;

    // ---- point to point, barriers ----
    WorkPtr send(Tensors& tensors, int peer, int tag) override;
    WorkPtr recv(Tensors& tensors, int peer, int tag) override;
    WorkPtr recvAnysource(Tensors& tensors, int tag) override;
    WorkPtr barrier(const c10d::BarrierOptions& options) override;
    void monitoredBarrier(const c10d::BarrierOptions& options, bool waitForAll) override;

private:
    /// The start of every call: title, type, timeout, where it runs, its number.
    template <typename CallOptions>
    Call begin(const char* title, c10d::OpType type, const CallOptions& options) {
        return begin(title, type, options.timeout, options.asyncOp);
    }
    Call begin(const char* title, c10d::OpType type, std::chrono::milliseconds timeout,
               bool isAsync);
    WorkPtr issue(Call call);
    /// For calls whose `start` blocks and makes several calls of the library.
    WorkPtr issueOnLane(Call call);
    WorkPtr issued(WorkPtr work);
    std::shared_ptr<Lane> lane();
    std::shared_ptr<Lane> laneIfAny() const;
    Outcome close();
    void meetOverStore(const c10d::BarrierOptions& options, bool waitForAll);
    WorkPtr issueTogether(std::vector<Call> calls);
    WorkPtr batch(c10d::OpType type, std::vector<WorkPtr> parts);
    WorkPtr receive(const char* title, const at::Tensor& tensor, int peer, int tag);
    std::chrono::milliseconds limitOf(std::chrono::milliseconds asked) const;
    std::chrono::milliseconds groupTimeout() const;
    /// The device whose current stream a barrier is to come after: the one of the call or of the
    /// group, else the one that the group used last.
    std::optional<c10::Device> deviceOf(const c10d::BarrierOptions& options) const;
    void checkRoot(std::int64_t root, const char* operation) const;
    int globalRank(int rank) const;

    const c10::intrusive_ptr<c10d::Store> store_;
    const GroupSettings settings_;
    std::atomic<std::int64_t> timeoutMs_;
    const std::shared_ptr<Communicator> communicator_;
    std::atomic<std::uint64_t> sequence_{0};
    SideStreamsByDevice sideStreams_;
    TensorOrder tensorOrder_;
    std::uint64_t monitoredBarriers_ = 0;
    mutable std::mutex laneMutex_;
    std::shared_ptr<Lane> lane_;  ///< made when a call first needs it
    std::atomic<bool> isCoalescing_{false};
    std::atomic<std::uint64_t> batches_{0};
    std::mutex coalescedMutex_;
    std::vector<WorkPtr> coalesced_;
};

}  // namespace isthmus::glue
