#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "comm/transport/transport.hpp"

namespace isthmus {

inline std::uint64_t totalBytes(const Operation& operation) {
    std::uint64_t total = 0;
    for (const MemoryPiece& piece : operation.pieces) total += piece.bytes;
    return total;
}

/// Appends the memory of message bytes [offset, offset + bytes) to `pieces`, at most `most` entries
/// in all. Returns how many bytes that covers.
inline std::uint64_t appendPieces(const Operation& operation, std::uint64_t offset,
                                  std::uint64_t bytes, std::vector<iovec>& pieces,
                                  std::size_t most) {
    std::uint64_t covered = 0;
    for (const MemoryPiece& piece : operation.pieces) {
        if (covered == bytes || pieces.size() >= most) break;
        if (offset >= piece.bytes) {
            offset -= piece.bytes;
            continue;
        }
        const std::uint64_t take = std::min<std::uint64_t>(piece.bytes - offset, bytes - covered);
        pieces.push_back({piece.address + offset, static_cast<std::size_t>(take)});
        covered += take;
        offset = 0;
    }
    return covered;
}

/// Multiply and fold of the fields that differ; tags come from peers that proved the job key.
struct MessageTagHash {
    std::size_t operator()(const MessageTag& tag) const {
        std::uint64_t mixed = tag.communicator;
        const auto fold = [&mixed](std::uint64_t word) {
            mixed = (mixed ^ word) * 0x9e3779b97f4a7c15ULL;
            mixed ^= mixed >> 32;
        };
        fold(tag.sequence);
        fold(static_cast<std::uint64_t>(tag.segment) << 32 | tag.index);
        fold(static_cast<std::uint64_t>(tag.channel) << 48 |
             static_cast<std::uint64_t>(tag.from) << 32 | static_cast<std::uint64_t>(tag.to) << 16 |
             (tag.pointToPoint ? 1 : 0));
        return mixed;
    }
};

/// First in, first out; linked through Operation::next, so nothing is allocated.
class OperationQueue {
public:
    bool isEmpty() const { return first_ == nullptr; }
    Operation* first() const { return first_; }

    void push(Operation& operation) {
        operation.next = nullptr;
        (first_ == nullptr ? first_ : last_->next) = &operation;
        last_ = &operation;
    }
    void pushFront(Operation& operation) {
        operation.next = first_;
        if (first_ == nullptr) last_ = &operation;
        first_ = &operation;
    }
    Operation* pop() {
        Operation* const operation = first_;
        if (operation != nullptr) first_ = operation->next;
        return operation;
    }
    /// Takes out every operation that `claim` names and gives it to `taken`.
    template <typename Claim, typename Taken>
    void takeIf(const Claim& claim, const Taken& taken) {
        OperationQueue rest;
        while (Operation* const operation = pop()) {
            if (claim(*operation)) {
                taken(*operation);
            } else {
                rest.push(*operation);
            }
        }
        *this = rest;
    }

private:
    Operation* first_ = nullptr;
    Operation* last_ = nullptr;
};

/// Posted operations by tag: chains through Operation::next. Allocates only when it grows.
class OperationTable {
public:
    OperationTable() : chains_(64) {}

    std::size_t size() const { return size_; }

    void insert(Operation& operation) {
        if (size_ >= chains_.size()) grow();
        chainOf(operation.tag).push(operation);
        ++size_;
    }
    Operation* find(const MessageTag& tag) {
        Operation* found = chainOf(tag).first();
        while (found != nullptr && found->tag != tag) found = found->next;
        return found;
    }
    Operation* take(const MessageTag& tag) {
        Operation* found = nullptr;
        chainOf(tag).takeIf(
            [&](const Operation& each) { return found == nullptr && each.tag == tag; },
            [&](Operation& each) { found = &each; });
        if (found != nullptr) --size_;
        return found;
    }
    template <typename Claim, typename Taken>
    void takeIf(const Claim& claim, const Taken& taken) {
        for (OperationQueue& chain : chains_) {
            chain.takeIf(claim, [&](Operation& operation) {
                --size_;
                taken(operation);
            });
        }
    }

private:
    OperationQueue& chainOf(const MessageTag& tag) {
        return chains_[MessageTagHash()(tag) & (chains_.size() - 1)];
    }
    void grow() {
        std::vector<OperationQueue> old(chains_.size() * 2);
        old.swap(chains_);
        for (OperationQueue& chain : old) {
            while (Operation* const operation = chain.pop())
                chainOf(operation->tag).push(*operation);
        }
    }

    std::vector<OperationQueue> chains_;  // a power of two
    std::size_t size_ = 0;
};

}  // namespace isthmus
