#include "comm/bootstrap/store_wire.hpp"

#include <algorithm>
#include <cstring>

#include "comm/base/assert.hpp"
#include "comm/base/bytes.hpp"

namespace isthmus {

namespace {

constexpr std::string_view kClientMagic = "ISTHMUS?";
constexpr std::string_view kServerMagic = "ISTHMUS!";
constexpr std::string_view kLineEnd = "\r\n\r\n";
constexpr std::size_t kVersionAt = kMagicBytes;
constexpr std::size_t kInstanceAt = kMagicBytes + 8;
constexpr std::size_t kProofAt = kInstanceAt + 2 * sizeof(Nonce);
constexpr std::size_t kFrameMacBytes = 16;  // half of SHA-256, as RFC 2104 section 5 allows
constexpr std::size_t kFrameHeaderBytes = sizeof(std::uint32_t) + kFrameMacBytes;

static_assert(kClientHelloBytes == kMagicBytes + 4 + sizeof(Nonce) + kLineEnd.size());
static_assert(kServerHelloBytes == kProofAt + sizeof(Mac));

template <typename Part>
void place(Bytes& target, std::size_t at, const Part& part) {
    std::memcpy(target.data() + at, part.data(), part.size());
}

void placeVersion(Bytes& target) {
    std::memcpy(target.data() + kVersionAt, &kStoreVersion, sizeof kStoreVersion);
}

std::uint16_t versionOf(std::span<const std::byte> hello) {
    std::uint16_t version = 0;
    std::memcpy(&version, hello.data() + kVersionAt, sizeof version);
    return version;
}

bool startsWith(std::span<const std::byte> data, std::string_view text) {
    return data.size() >= text.size() && std::memcmp(data.data(), text.data(), text.size()) == 0;
}

Bytes joined(std::span<const std::byte> first, std::span<const std::byte> second) {
    Bytes all(first.begin(), first.end());
    append(all, second);
    return all;
}

std::string printable(std::span<const std::byte> data) {
    std::string text;
    for (const std::byte value : data.first(std::min<std::size_t>(data.size(), 40))) {
        const char letter = static_cast<char>(value);
        if (letter == '\r' || letter == '\n') break;
        text += letter >= ' ' && letter <= '~' ? letter : '.';
    }
    return text;
}

std::string versionsText(std::uint16_t theirs) {
    return "speaks version " + std::to_string(theirs) + " of the store protocol, this is version " +
           std::to_string(kStoreVersion);
}

}  // namespace

Bytes clientHello(const Nonce& nonce) {
    Bytes hello(kClientHelloBytes);
    place(hello, 0, kClientMagic);
    placeVersion(hello);
    place(hello, kMagicBytes + 4, nonce);
    place(hello, kMagicBytes + 4 + nonce.size(), kLineEnd);
    return hello;
}

Bytes serverHello(const JobKey& key, const StoreInstance& instance, const Nonce& nonce,
                  std::span<const std::byte> hello) {
    Bytes answer(kServerHelloBytes);
    place(answer, 0, kServerMagic);
    placeVersion(answer);
    place(answer, kInstanceAt, instance);
    place(answer, kInstanceAt + sizeof(Nonce), nonce);
    const auto said = joined(hello, std::span(answer).first(kProofAt));
    place(answer, kProofAt, proofOf(key, "isthmus store server", said));
    return answer;
}

Mac clientProof(const JobKey& key, std::span<const std::byte> hello,
                std::span<const std::byte> answer) {
    return proofOf(key, "isthmus store client", joined(hello, answer));
}

Status checkClientHello(std::span<const std::byte> hello) {
    if (hello.size() != kClientHelloBytes || !startsWith(hello, kClientMagic)) {
        return Status::mismatch("not a client of an isthmus store");
    }
    if (versionOf(hello) != kStoreVersion) {
        return Status::mismatch("a client " + versionsText(versionOf(hello)));
    }
    return {};
}

bool mayBeClientHello(std::span<const std::byte> start) {
    const auto seen = std::min(start.size(), kClientMagic.size());
    return startsWith(start, kClientMagic.substr(0, seen));
}

bool mayBeServerHello(std::span<const std::byte> start) {
    const auto seen = std::min(start.size(), kServerMagic.size());
    return startsWith(start, kServerMagic.substr(0, seen));
}

Result<StoreInstance> checkServerHello(const JobKey& key, std::span<const std::byte> hello,
                                       std::span<const std::byte> answer) {
    if (startsWith(answer, kClientMagic)) {
        return Status::configuration(
            "another service answered, not an isthmus store: it sends back what it is sent");
    }
    if (answer.size() < kServerHelloBytes || !startsWith(answer, kServerMagic)) {
        return Status::configuration("another service answered, not an isthmus store: it said \"" +
                                     printable(answer) + "\"");
    }
    if (versionOf(answer) != kStoreVersion) {
        return Status::configuration("the store " + versionsText(versionOf(answer)));
    }
    const auto said = joined(hello, answer.first(kProofAt));
    if (!isEqualInConstantTime(answer.subspan(kProofAt, sizeof(Mac)),
                               proofOf(key, "isthmus store server", said))) {
        return Status::configuration(
            "the job key differs: the store there belongs to another job, or this process was "
            "given another key");
    }
    StoreInstance instance{};
    std::memcpy(instance.data(), answer.data() + kInstanceAt, instance.size());
    return instance;
}

FrameStream::FrameStream(const JobKey& key, const Mac& session, Side sender) : sender_(sender) {
    key_.bytes = hmacSha256(key, {session});
}

Mac FrameStream::macOf(std::span<const std::byte> body) const {
    const auto bodyBytes = static_cast<std::uint64_t>(body.size());
    const auto header = ByteWriter().put(sender_).put(frames_).put(bodyBytes).take();
    return hmacSha256(key_, {header, body});
}

Bytes FrameStream::seal(std::span<const std::byte> body) {
    ISTHMUS_ASSERT(body.size() <= kMostFrameBytes);
    const Mac mac = macOf(body);
    ++frames_;
    Bytes frame = ByteWriter().put(static_cast<std::uint32_t>(body.size())).take();
    append(frame, std::span(mac).first(kFrameMacBytes));
    append(frame, body);
    return frame;
}

Result<std::optional<FrameStream::Opened>> FrameStream::open(std::span<const std::byte> data) {
    if (data.size() < sizeof(std::uint32_t)) return std::optional<Opened>();
    const std::size_t bodyBytes = ByteReader(data).get<std::uint32_t>();
    if (bodyBytes > kMostFrameBytes) {
        return Status::mismatch("a store frame says " + std::to_string(bodyBytes) +
                                " bytes, the most is " + std::to_string(kMostFrameBytes));
    }
    if (data.size() < kFrameHeaderBytes + bodyBytes) return std::optional<Opened>();
    const auto body = data.subspan(kFrameHeaderBytes, bodyBytes);
    const Mac mac = macOf(body);
    if (!isEqualInConstantTime(data.subspan(sizeof(std::uint32_t), kFrameMacBytes),
                               std::span(mac).first(kFrameMacBytes))) {
        return Status::mismatch("a store frame was changed on its way");
    }
    ++frames_;
    return std::optional<Opened>(
        Opened{Bytes(body.begin(), body.end()), kFrameHeaderBytes + bodyBytes});
}

Bytes encode(const StoreRequest& request) {
    return ByteWriter()
        .put(request.verb)
        .put(request.limitMilliseconds)
        .put(request.key)
        .put(std::span<const std::byte>(request.value))
        .take();
}

Bytes encode(const StoreAnswer& answer) {
    return ByteWriter().put(answer.code).put(std::span<const std::byte>(answer.body)).take();
}

Result<StoreRequest> decodeStoreRequest(std::span<const std::byte> data) {
    ByteReader reader(data);
    StoreRequest request;
    const auto verb = reader.get<std::uint8_t>();
    request.limitMilliseconds = reader.get<std::uint32_t>();
    request.key = reader.getText();
    const auto value = reader.getBytes();
    if (!reader.ok() || !reader.atEnd() || verb < 1 || verb > 4) {
        return Status::mismatch("a store request that cannot be read");
    }
    request.verb = static_cast<StoreVerb>(verb);
    request.value.assign(value.begin(), value.end());
    ISTHMUS_TRY(checkStoreKey(request.key));
    ISTHMUS_TRY(checkStoreValue(request.value));
    return request;
}

Result<StoreAnswer> decodeStoreAnswer(std::span<const std::byte> data) {
    ByteReader reader(data);
    StoreAnswer answer;
    answer.code = reader.get<Status::Code>();
    const auto body = reader.getBytes();
    const bool isKnown =
        static_cast<int>(answer.code) <= 8 || answer.code == Status::Code::kInternal;
    if (!reader.ok() || !reader.atEnd() || !isKnown) {
        return Status::mismatch("a store answer that cannot be read");
    }
    answer.body.assign(body.begin(), body.end());
    return answer;
}

Status checkStoreKey(std::string_view key) {
    if (key.empty()) return Status::invalidArgument("a store key is empty");
    if (key.size() <= kMostKeyBytes) return {};
    return Status::invalidArgument("a store key has " + std::to_string(key.size()) +
                                   " bytes, the most is " + std::to_string(kMostKeyBytes));
}

Status checkStoreValue(const Bytes& value) {
    if (value.size() <= kMostValueBytes) return {};
    return Status::invalidArgument("a store value has " + std::to_string(value.size()) +
                                   " bytes, the most is " + std::to_string(kMostValueBytes));
}

}  // namespace isthmus
