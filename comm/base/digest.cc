#include "comm/base/digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace isthmus {

namespace {
XXH3_state_t* stateOf(void* state) {
    return static_cast<XXH3_state_t*>(state);
}
}  // namespace

Digest::Digest() : state_(XXH3_createState()) {
    XXH3_64bits_reset(stateOf(state_));
}

Digest::~Digest() {
    XXH3_freeState(stateOf(state_));
}

Digest& Digest::add(std::span<const std::byte> data) {
    XXH3_64bits_update(stateOf(state_), data.data(), data.size());
    return *this;
}

Digest& Digest::add(std::string_view text) {
    add(text.size());
    return add(std::as_bytes(std::span(text.data(), text.size())));
}

std::uint64_t Digest::value() const {
    return XXH3_64bits_digest(stateOf(state_));
}

std::uint64_t digestOf(std::string_view text) {
    return XXH3_64bits(text.data(), text.size());
}

}  // namespace isthmus
