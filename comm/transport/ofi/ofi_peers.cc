#include "comm/transport/ofi/ofi_peers.hpp"

#include "comm/base/bytes.hpp"

namespace isthmus {

namespace {
constexpr std::uint32_t kPlaceVersion = 1;
}

Bytes toBytes(const OfiPlace& place) {
    ByteWriter writer;
    writer.put(kPlaceVersion).put(std::string_view(place.provider));
    writer.put(std::span<const std::byte>(place.name)).put(std::span<const std::byte>(place.host));
    writer.put(place.ground).put(std::span<const std::byte>(place.groundKey));
    return writer.take();
}

Result<OfiPlace> ofiPlaceFrom(std::span<const std::byte> data) {
    const auto copyOf = [](std::span<const std::byte> part) {
        return Bytes(part.begin(), part.end());
    };
    ByteReader reader(data);
    const auto version = reader.get<std::uint32_t>();
    OfiPlace place;
    place.provider = reader.getText();
    place.name = copyOf(reader.getBytes());
    place.host = copyOf(reader.getBytes());
    place.ground = reader.get<std::uint64_t>();
    place.groundKey = copyOf(reader.getBytes());
    if (!reader.ok() || !reader.atEnd() || version != kPlaceVersion || place.name.empty()) {
        return Status::mismatch("ofi: an address that is none");
    }
    return place;
}

}  // namespace isthmus
