#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <atomic>

#include "torch_plugin/csrc/interrupts.hpp"
#include "torch_plugin/csrc/work.hpp"

namespace isthmus::glue {
namespace {

using Parts = std::vector<c10::intrusive_ptr<c10d::Work>>;
using Future = c10::ivalue::Future;

/// Ends `whole` with `value()` when every one of `parts` ended, or with the first error.
void endTogether(const c10::intrusive_ptr<Future>& whole,
                 const std::vector<c10::intrusive_ptr<Future>>& parts,
                 const std::function<c10::IValue()>& value) {
    auto left = std::make_shared<std::atomic<std::size_t>>(parts.size());
    for (const auto& part : parts) {
        part->addCallback([whole, left, value](Future& ended) {
            if (ended.hasError()) {
                whole->setErrorIfNeeded(ended.exception_ptr());
            } else if (left->fetch_sub(1) == 1) {
                whole->markCompleted(value());
            }
        });
    }
    if (parts.empty()) whole->markCompleted(value());
}

std::vector<at::Tensor> resultsOf(const Parts& parts) {
    std::vector<at::Tensor> all;
    for (const auto& part : parts) {
        for (at::Tensor& tensor : part->result()) all.push_back(std::move(tensor));
    }
    return all;
}

}  // namespace

BatchWork::BatchWork(int rank, c10d::OpType type, Parts parts)
    : c10d::Work(rank, type), parts_(std::move(parts)) {}

bool BatchWork::isCompleted() {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part->isCompleted(); });
}

bool BatchWork::isSuccess() const {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part->isSuccess(); });
}

std::exception_ptr BatchWork::exception() const {
    for (const auto& part : parts_) {
        if (const std::exception_ptr error = part->exception()) return error;
    }
    return nullptr;
}

bool BatchWork::wait(std::chrono::milliseconds timeout) {
    const auto until = std::chrono::steady_clock::now() + timeout;
    for (const auto& part : parts_) {
        auto left = kNoTimeout;
        if (timeout > kNoTimeout) {
            left = std::chrono::duration_cast<std::chrono::milliseconds>(
                until - std::chrono::steady_clock::now());
            left = std::max(left, std::chrono::milliseconds(1));  // zero would mean no limit
        }
        part->wait(left);
        if (Patience::wasInterrupted()) return true;  // the caller must hear of it first
    }
    forgetInRegistry(this);
    return true;
}

void BatchWork::synchronize() {
    for (const auto& part : parts_) part->synchronize();
}

std::vector<at::Tensor> BatchWork::result() {
    return resultsOf(parts_);
}

c10::intrusive_ptr<Future> BatchWork::getFuture() {
    std::vector<c10::intrusive_ptr<Future>> futures;
    std::vector<c10::Device> devices;
    for (const auto& part : parts_) {
        futures.push_back(part->getFuture());
        const auto& more = futures.back()->devices();
        devices.insert(devices.end(), more.begin(), more.end());
    }
    auto whole = c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()),
                                             std::move(devices));
    endTogether(whole, futures, [parts = parts_, futures] {
        // On devices the current stream waits for each, not for the one that ended last alone.
        for (const auto& future : futures) future->wait();
        return c10::IValue(resultsOf(parts));
    });
    return whole;
}

c10::intrusive_ptr<Future> BatchWork::getFutureResult() {
    auto whole = c10::make_intrusive<Future>(c10::IntType::get());
    std::vector<c10::intrusive_ptr<Future>> futures;
    for (const auto& part : parts_) futures.push_back(part->getFutureResult());
    endTogether(whole, futures, [futures] {
        std::int64_t worst = 0;  // SUCCESS is the least
        for (const auto& future : futures) worst = std::max(worst, future->constValue().toInt());
        return c10::IValue(worst);
    });
    return whole;
}

float BatchWork::getDuration() const {
    float longest = 0;
    for (const auto& part : parts_) longest = std::max(longest, part->getDuration());
    return longest;
}

std::uint64_t BatchWork::getSequencenumber() const {
    return parts_.empty() ? 0 : parts_.back()->getSequencenumber();
}

}  // namespace isthmus::glue
