#include "comm/transport/ofi/ofi_operations.hpp"

namespace isthmus {

OfiPool::OfiPool(std::size_t operations, std::size_t bufferBytes)
    : operations_(operations),
      bufferBytes_(bufferBytes),
      memory_(std::make_unique<std::byte[]>(operations * bufferBytes)) {
    free_.reserve(operations);
    for (std::size_t at = operations; at-- > 0;) {
        operations_[at].local = memory_.get() + at * bufferBytes;
        free_.push_back(&operations_[at]);
    }
}

OfiOperation* OfiPool::take() {
    if (free_.empty()) return nullptr;
    OfiOperation* const operation = free_.back();
    free_.pop_back();
    operation->isBusy = true;
    return operation;
}

void OfiPool::giveBack(OfiOperation& operation) {
    operation.isBusy = false;
    operation.peer = {};
    free_.push_back(&operation);
}

}  // namespace isthmus
