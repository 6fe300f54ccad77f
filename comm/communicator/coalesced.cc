#include "comm/communicator/coalesced.hpp"

#include <cstring>
#include <optional>

#include "comm/base/digest.hpp"
#include "comm/communicator/together.hpp"

namespace isthmus {

namespace {

// Operand of a tensor that is packed. Its two copies take about 25 us at 5 GB/s, and so does
// another call over a few ranks: beyond that a call of its own is the better bargain.
constexpr std::size_t kSmallBytes = std::size_t{64} << 10;

// Of one packed call: a few segments, so that packing the next one overlaps with it.
constexpr std::size_t kParcelBytes = std::size_t{4} << 20;

bool hasManyInputBlocks(Collective collective) {
    return collective == Collective::kReduceScatter || collective == Collective::kAllToAll;
}

bool hasManyOutputBlocks(Collective collective) {
    return collective == Collective::kAllGather || collective == Collective::kAllToAll;
}

/// Some tensors as one plain call.
class Parcel {
public:
    Parcel(const CallRequest& like, std::vector<Tensor> tensors, int ranks)
        : like_(like), tensors_(std::move(tensors)), width_(bytesOf(like.type)) {
        inputBlocks_ = hasManyInputBlocks(like.collective) ? ranks : 1;
        outputBlocks_ = hasManyOutputBlocks(like.collective) ? ranks : 1;
        for (const Tensor& tensor : tensors_) count_ += tensor.count;
    }

    /// The call without buffers, for a rank that only adds.
    CallRequest bare() const {
        CallRequest call = like_;
        call.counts.uniform = count_;
        if (tensors_.size() > 1) call.listDigest = digestOfCounts() | 1;  // 0: no list
        return call;
    }

    /// The call, whose input is packed. `reads`: this rank has an input.
    CallRequest pack(bool reads) {
        CallRequest call = bare();
        if (const Tensor* first = neighbours(reads)) {
            call.input = first->input;
            call.output = first->output;
            return call;
        }
        const bool isOne = inputBlocks_ == outputBlocks_;
        input_ = bytes(inputBlocks_);
        if (!isOne) output_ = bytes(outputBlocks_);
        if (reads) {
            forEachPiece(inputBlocks_, [&](const Tensor& tensor, std::size_t at, std::size_t in) {
                std::memcpy(input_.get() + at, tensor.input + in, tensor.count * width_);
            });
        }
        call.input = input_.get();
        call.output = isOne ? input_.get() : output_.get();
        return call;
    }

    void unpack() {
        if (input_ == nullptr) return;
        const std::byte* const from = output_ != nullptr ? output_.get() : input_.get();
        forEachPiece(outputBlocks_, [&](const Tensor& tensor, std::size_t at, std::size_t out) {
            std::memcpy(tensor.output + out, from + at, tensor.count * width_);
        });
    }

private:
    std::uint64_t digestOfCounts() const {
        Digest digest;
        for (const Tensor& tensor : tensors_) digest.add(tensor.count);
        return digest.value();
    }

    /// The first tensor of all when nothing must be packed: it is the only one with elements, or
    /// all lie one after the other.
    const Tensor* neighbours(bool reads) const {
        const Tensor* first = nullptr;
        const Tensor* last = nullptr;
        for (const Tensor& tensor : tensors_) {
            if (tensor.count == 0) continue;
            if (last != nullptr) {
                const std::size_t bytes = last->count * width_;
                if (inputBlocks_ > 1 || outputBlocks_ > 1) return nullptr;
                if (reads && last->input + bytes != tensor.input) return nullptr;
                if (last->output + bytes != tensor.output) return nullptr;
            }
            if (first == nullptr) first = &tensor;
            last = &tensor;
        }
        return first != nullptr ? first : &tensors_.front();
    }

    std::unique_ptr<std::byte[]> bytes(int blocks) const {  // not zeroed: all of it is written
        return std::unique_ptr<std::byte[]>(
            new std::byte[count_ * width_ * static_cast<std::size_t>(blocks)]);
    }

    /// Every block of every tensor: where it is in the parcel and in the tensor, in bytes.
    template <typename Copy>
    void forEachPiece(int blocks, const Copy& copy) const {
        std::size_t at = 0;
        for (int block = 0; block < blocks; ++block) {
            for (const Tensor& tensor : tensors_) {
                const std::size_t bytes = tensor.count * width_;
                if (bytes > 0) copy(tensor, at, bytes * static_cast<std::size_t>(block));
                at += bytes;
            }
        }
    }

    const CallRequest& like_;
    std::vector<Tensor> tensors_;
    std::size_t width_;
    int inputBlocks_ = 1;
    int outputBlocks_ = 1;
    std::size_t count_ = 0;
    std::unique_ptr<std::byte[]> input_;
    std::unique_ptr<std::byte[]> output_;
};

}  // namespace

std::vector<std::vector<std::size_t>> CoalescedCall::parcels(int ranks) const {
    const bool isMany =
        hasManyInputBlocks(like_.collective) || hasManyOutputBlocks(like_.collective);
    const std::size_t scale = bytesOf(like_.type) * static_cast<std::size_t>(isMany ? ranks : 1);
    std::vector<std::vector<std::size_t>> parcels;
    std::optional<std::size_t> open;  // the parcel that small ones join
    std::size_t bytes = 0;
    for (std::size_t index = 0; index < tensors_.size(); ++index) {
        const std::size_t mine = tensors_[index].count * scale;
        if (mine > kSmallBytes) {
            parcels.push_back({index});
            continue;
        }
        if (!open.has_value() || bytes + mine > kParcelBytes) {
            open = parcels.size();
            bytes = 0;
            parcels.emplace_back();
        }
        parcels[*open].push_back(index);
        bytes += mine;
    }
    return parcels;
}

Status CoalescedCall::prepare(Communicator& communicator, const CallOptions& options) const {
    for (std::size_t index = 0; index < tensors_.size(); ++index) {
        const Status status = communicator.check(callOf(tensors_[index]));
        if (!status.ok()) return status.within("tensor " + std::to_string(index));
    }
    // Plans are for what travels: choosing one for each tensor would fill their cache.
    for (const auto& parcel : parcels(communicator.ranks())) {
        std::size_t count = 0;
        std::size_t widest = parcel.front();
        for (const std::size_t index : parcel) {
            count += tensors_[index].count;
            if (tensors_[index].count > tensors_[widest].count) widest = index;
        }
        CallRequest whole = callOf(tensors_[widest]);  // its buffers are no null pointers
        whole.counts.uniform = count;
        ISTHMUS_TRY(communicator.prepare(whole, options));
    }
    return {};
}

CallRequest CoalescedCall::callOf(const Tensor& tensor) const {
    CallRequest call = like_;
    call.input = tensor.input;
    call.output = tensor.output;
    call.counts.uniform = tensor.count;
    return call;
}

std::shared_ptr<Work> CoalescedCall::start(Communicator& communicator, const CallOptions& options,
                                           const StartOne& startOne) const {
    if (Status status = prepare(communicator, options); !status.ok()) {
        auto refused = std::make_shared<Work>();
        refused->complete(std::move(status));
        return refused;
    }
    struct Started {
        CallRequest like;
        std::vector<Parcel> parcels;
    };
    auto all = std::make_shared<Started>();
    all->like = like_;
    const bool reads =
        like_.collective != Collective::kBroadcast || like_.root == communicator.rank();
    const bool isBare = communicator.onlySums(like_);
    CallOptions how = options;
    how.isBlocking = false;
    const auto lists = parcels(communicator.ranks());
    all->parcels.reserve(lists.size());
    std::vector<std::shared_ptr<Work>> works;
    for (const auto& list : lists) {
        std::vector<Tensor> tensors;
        for (const std::size_t index : list) tensors.push_back(tensors_[index]);
        Parcel& parcel =
            all->parcels.emplace_back(all->like, std::move(tensors), communicator.ranks());
        works.push_back(startOne(isBare ? parcel.bare() : parcel.pack(reads), how));
    }
    auto whole = together(works, [all] {
        for (Parcel& parcel : all->parcels) parcel.unpack();
    });
    if (options.isBlocking) (void)communicator.wait(*whole, options.patience).ok();
    return whole;
}

}  // namespace isthmus
