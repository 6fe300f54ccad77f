#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace isthmus::glue {

class Staging;

/// Which memory of devices the calls of a group in flight read and write. Calls on one tensor keep
/// their order without a wait in between, as torch's NCCL backend, whose calls follow each other on
/// one stream, has taught its users. Any thread.
class TensorOrder {
public:
    /// Notes a call, which is about to be issued; gives those before it that must have ended,
    /// results and all, before it may take its tensors. Calls of one `batch` (not zero) are meant
    /// to go on side by side, so there is no order among them.
    std::vector<std::shared_ptr<Staging>> add(const std::shared_ptr<Staging>& call,
                                              const std::vector<at::Tensor>& writes,
                                              std::uint64_t batch);

private:
    /// From the first to after the last byte of a tensor, gaps and all.
    struct Span {
        c10::Device device;
        std::uintptr_t begin;
        std::uintptr_t end;
    };
    using Spans = std::vector<Span>;
    struct Use {
        std::weak_ptr<Staging> call;
        Spans reads;
        Spans writes;
        std::uint64_t batch;
        bool isLate;  ///< what it reads is not taken when it is issued
    };

    static Spans spansOf(const std::vector<at::Tensor>& tensors);
    static bool meet(const Spans& some, const Spans& others);
    static bool mustFollow(const Use& later, const Use& earlier);

    std::mutex mutex_;
    std::vector<Use> uses_;
};

}  // namespace isthmus::glue
