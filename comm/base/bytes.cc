#include "comm/base/bytes.hpp"

namespace isthmus {

void append(Bytes& target, std::span<const std::byte> data) {
    target.insert(target.end(), data.begin(), data.end());
}

}  // namespace isthmus
