#include "comm/transport/negotiate.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/base/bytes.hpp"

namespace isthmus {

namespace {

constexpr std::string_view kHelloGreeting = "isthmusH";
constexpr std::string_view kAnswerGreeting = "isthmusA";
constexpr std::uint16_t kWireVersion = 1;
constexpr std::size_t kSaidInAnswer = kAnswerBytes - sizeof(Mac);

bool startsWith(std::span<const std::byte> data, std::string_view greeting) {
    return data.size() >= greeting.size() &&
           std::memcmp(data.data(), greeting.data(), greeting.size()) == 0;
}

struct Said {
    std::uint16_t version = 0;
    std::uint16_t purpose = 0;
    ProcessId first;   // of HELLO: who speaks; of ANSWER: who answers
    ProcessId second;  // of HELLO: who is wanted
};

Said read(std::span<const std::byte> data, bool hasSecond) {
    ByteReader reader(data.subspan(kGreetingBytes));
    Said said;
    said.version = reader.get<std::uint16_t>();
    said.purpose = reader.get<std::uint16_t>();
    reader.get<std::uint32_t>();
    said.first.high = reader.get<std::uint64_t>();
    said.first.low = reader.get<std::uint64_t>();
    if (hasSecond) {
        said.second.high = reader.get<std::uint64_t>();
        said.second.low = reader.get<std::uint64_t>();
    }
    return said;
}

/// Both greet, name version and purpose, then say ids and a nonce.
template <std::size_t kBytes>
void write(std::string_view greeting, Purpose purpose, std::initializer_list<ProcessId> ids,
           std::array<std::byte, kBytes>& to) {
    ByteWriter writer;
    writer.put(kWireVersion).put(purpose).put(std::uint32_t{0});
    for (const ProcessId& id : ids) writer.put(id.high).put(id.low);
    const Bytes middle = writer.take();
    const Nonce nonce = makeNonce();
    std::memcpy(to.data(), greeting.data(), kGreetingBytes);
    std::copy(middle.begin(), middle.end(), to.begin() + kGreetingBytes);
    std::copy(nonce.begin(), nonce.end(), to.begin() + kGreetingBytes + middle.size());
}

Mac answerProof(const JobKey& key, const Hello& hello, const Answer& answer) {
    std::vector<std::byte> transcript(hello.begin(), hello.end());
    transcript.insert(transcript.end(), answer.begin(), answer.begin() + kSaidInAnswer);
    return proofOf(key, "isthmus transport answer", transcript);
}

Mac connectorProof(const JobKey& key, const Hello& hello, const Answer& answer) {
    std::vector<std::byte> transcript(hello.begin(), hello.end());
    transcript.insert(transcript.end(), answer.begin(), answer.end());
    return proofOf(key, "isthmus transport proof", transcript);
}

Status otherVersion(std::uint16_t theirs) {
    return Status::configuration("transport version " + std::to_string(theirs) +
                                 " there, version " + std::to_string(kWireVersion) + " here");
}

}  // namespace

bool isHelloGreeting(std::span<const std::byte, kGreetingBytes> greeting) {
    return startsWith(greeting, kHelloGreeting);
}

bool isAnswerGreeting(std::span<const std::byte, kGreetingBytes> greeting) {
    return startsWith(greeting, kAnswerGreeting);
}

NegotiateConnector::NegotiateConnector(const JobKey& key, Purpose purpose, const ProcessId& self,
                                       const ProcessId& peer)
    : key_(key), peer_(peer) {
    write(kHelloGreeting, purpose, {self, peer}, hello_);
}

Status NegotiateConnector::check(const Answer& answer) {
    if (!startsWith(answer, kAnswerGreeting)) {
        return Status::configuration("what answers there is not isthmus");
    }
    const Said said = read(answer, false);
    if (said.version != kWireVersion) return otherVersion(said.version);
    if (!isEqualInConstantTime(std::span(answer).subspan(kSaidInAnswer),
                               answerProof(key_, hello_, answer))) {
        return Status::configuration(
            "the job key differs: another job's process answers there, or this one was started "
            "with a stale key");
    }
    if (said.first != peer_) {
        return Status::peerLost("another process of the job has this address now");
    }
    answer_ = answer;
    return {};
}

Mac NegotiateConnector::proof() const {
    return connectorProof(key_, hello_, answer_);
}

Result<Answer> NegotiateAcceptor::answer(const Hello& hello) {
    if (!startsWith(hello, kHelloGreeting)) return Status::mismatch("it does not speak isthmus");
    hello_ = hello;
    write(kAnswerGreeting, purpose_, {self_}, answer_);
    const Mac proof = answerProof(key_, hello_, answer_);
    std::copy(proof.begin(), proof.end(), answer_.begin() + kSaidInAnswer);
    peer_ = read(hello, true).first;
    return answer_;
}

Status NegotiateAcceptor::check(const Mac& proof) const {
    if (!isEqualInConstantTime(proof, connectorProof(key_, hello_, answer_))) {
        return Status::configuration("it does not know the job key");
    }
    const Said said = read(hello_, true);
    if (said.version != kWireVersion) return otherVersion(said.version);
    if (said.purpose != static_cast<std::uint16_t>(purpose_)) {
        return Status::configuration("it wants another kind of connection");
    }
    if (said.second != self_) return Status::configuration("it wants another process");
    return {};
}

}  // namespace isthmus
