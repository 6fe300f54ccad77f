#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/transport/tcp/tcp_shares.hpp"
#include "comm/transport/tcp/tcp_stream.hpp"

namespace isthmus {

// One connection to a peer carries its stream as it is. Several, one for each pair of cards, carry
// chunks of it, each behind a header: which of them has room takes the next, so each carries what
// it can, and what a card had not delivered when it was lost goes again over the others. For that
// chunks are copied and kept until the peer says that it has them.

struct TcpChunkHeader {
    static constexpr std::uint32_t kMagic = 0x4b4e4843;
    std::uint32_t magic = kMagic;
    std::uint32_t bytes = 0;  ///< of the stream that follow
    std::uint64_t sequence = 0;
};
inline constexpr std::size_t kTcpChunkHeaderBytes = 16;
static_assert(sizeof(TcpChunkHeader) == kTcpChunkHeaderBytes);

/// 0.1 ms of a 5 Gbit/s line. Larger ones end farther apart on different cards: 128 KiB over four
/// cards reach 0.9 of what these carry, 64 KiB 0.97.
inline constexpr std::uint32_t kTcpChunkBytes = 64 * 1024;
/// How many chunks may be kept: what several fast cards have under way within a round trip.
inline constexpr std::size_t kMostTcpChunks = 256;
/// The peer says what it has after so many.
inline constexpr int kTcpChunksPerWord = 16;

/// Against the direction of a connection: "I have every chunk before this one, and these came
/// late", or, one byte, a goodbye.
struct TcpWord {
    enum class Kind : char { kHave = 'A', kBye = 'B' };
    static constexpr std::size_t kHaveBytes = 1 + sizeof(std::uint64_t) + sizeof(TcpLateness);
};

/// The connections that lead to one peer.
class TcpBundleOut final : public OutStream {
public:
    /// `names`: of the ways, for people; one for each connection there may be.
    TcpBundleOut(TcpShared& shared, TcpLink& link, std::vector<std::string> names);

    /// Takes no more than can be on its way at once.
    Moved writeSome(std::span<const iovec> pieces) override;
    /// What was taken and has not been written: none of it needs the caller any more.
    std::size_t push();
    bool hasRest() const;
    bool hasRoom() const;
    /// `push` can do something.
    bool canPush() const;

    TcpOut& lane(std::size_t at) { return lanes_[at]->out; }
    void opened(std::size_t at, UniqueFd socket);
    /// False when it was the last one that could still be used.
    bool lose(std::size_t at, const Status& why);
    bool isOpen() const;
    const Status& lastLoss() const { return lastLoss_; }
    void setRoom();
    void count(std::vector<CardCounters>& cards) const;
    void close();

    /// Reads what the peer says on that connection. Failed: it has ended. True: it said goodbye.
    Result<bool> hear(std::size_t at);

    /// Finds connections over which nothing gets through any more while others work.
    void watch(Time now);
    /// How soon; Time::max(): not at all.
    Time lookWithin() const;

private:
    struct Chunk {
        std::uint64_t sequence = 0;
        std::vector<std::byte> bytes;  // with the header
        std::size_t written = 0;
        bool isWhole() const { return written == bytes.size(); }
    };
    struct Lane {
        Lane(TcpShared& shared, TcpLink& link, std::size_t at) : out(shared, link, at) {}
        TcpOut out;
        std::deque<std::unique_ptr<Chunk>> sent;  // not confirmed; the last may be under way
        std::array<std::byte, TcpWord::kHaveBytes> word{};
        std::size_t heard = 0;  // of word
        std::uint64_t acknowledged = 0;
        Time movedAt{0};
        std::uint64_t written = 0;  // bytes, as its peer's system counts them
        double waiting = 0;         // of them, not acknowledged
        double bytesPerSecond = 0;  // that it carried lately
        std::uint64_t carried = 0;  // bytes, by the last look
        std::uint64_t counted = 0;  // by the last count
        int mostUnsent = 0;         // bytes, as its kernel was told
        std::chrono::steady_clock::time_point usedAt;
        bool isLost = false;
        bool isTold = false;
        Status why;
    };

    bool isBundle() const { return lanes_.size() > 1; }
    static bool isUsable(const Lane& lane) { return !lane.isLost && lane.out.socket.fd.isOpen(); }
    static bool isBusy(const Lane& lane) {
        return !lane.sent.empty() && !lane.sent.back()->isWhole();
    }
    Lane* freeLane() const;
    bool isForgotten(const Lane& lane) const;
    void measure();
    void countCarried();
    static void limitUnsent(Lane& lane);
    std::size_t write(Lane& lane);
    std::unique_ptr<Chunk> takeChunk(std::span<const iovec> pieces);
    void have(std::uint64_t next, const TcpLateness& late);
    double secondsOf(const Lane& lane) const;
    bool isStalled(Lane& lane, Time now);
    void tellLosses(Time now);

    TcpShared& shared_;
    const std::vector<std::string> names_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::deque<std::unique_ptr<Chunk>> again_;  // of lost connections, in order
    std::vector<std::unique_ptr<Chunk>> spare_;
    std::uint64_t sequence_ = 0;
    std::size_t kept_ = 0;
    TcpShares shares_;
    std::uint64_t had_ = 0;         // chunks, as the peer said last
    double bytesPerShare_ = 125e6;  // and second
    std::chrono::steady_clock::time_point countedAt_;
    std::chrono::steady_clock::time_point measuredAt_;
    Time watchedAt_{0};
    Time lostAt_{0};       // a connection was, and nobody was told; zero: not so
    bool isQuiet_ = true;  // the peer's system had everything when we looked last
    Status lastLoss_;
};

/// The connections that come from one peer.
class TcpBundleIn final : public InStream {
public:
    TcpBundleIn(TcpShared& shared, TcpLink& link, std::size_t lanes);

    /// An end or a failure is that of the last connection.
    Moved readSome(std::span<const iovec> pieces) override;

    /// False: there are all already.
    bool take(UniqueFd socket);
    TcpIn& lane(std::size_t at) { return lanes_[at]->in; }
    bool isEmpty() const;
    void count(std::vector<CardCounters>& cards) const;
    void sayBye();
    void close();

private:
    struct Store {
        std::unique_ptr<std::byte[]> bytes;  // of a chunk's greatest length
        std::size_t size = 0;                // of this one
    };
    struct Lane {
        Lane(TcpLink& link, std::size_t at) : in(link, at) {}
        TcpIn in;
        TcpChunkHeader chunk;
        std::size_t headerBytes = 0;  // of chunk
        std::size_t left = 0;         // of its bytes
        Store early;                  // those of a chunk that was not due when it began
        bool hasEnded = false;
        Status failure;

        bool hasChunk() const { return headerBytes == kTcpChunkHeaderBytes; }
        std::size_t at() const { return chunk.bytes - left; }
    };

    bool isBundle() const { return lanes_.size() > 1; }
    static bool canRead(const Lane& lane);
    Moved work(Lane& lane, std::span<const iovec> pieces);
    void readHeader(Lane& lane);
    void begin(Lane& lane);
    void discard(Lane& lane, std::size_t bytes);
    void readEarly(Lane& lane);
    std::size_t readChunk(Lane& lane, std::size_t most);
    Store takeStore(std::size_t bytes);
    void noteLate(std::size_t card);
    Lane* nextLane() const;
    Moved hand(Lane& lane, std::span<const iovec> pieces);
    Moved handEarly(std::span<const iovec> pieces);
    static std::size_t note(Lane& lane, const Moved& moved);
    void done(std::size_t bytes, std::size_t of);
    void sayHave();
    Moved ending() const;

    TcpShared& shared_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::size_t taken_ = 0;  // connections that came
    std::uint64_t next_ = 0;
    std::size_t done_ = 0;                  // bytes of that chunk that were handed on
    std::map<std::uint64_t, Store> early_;  // whole chunks that were not due
    std::vector<Store> spare_;
    int unsaid_ = 0;
    TcpLateness late_{};
    std::vector<std::byte> waste_;
    std::vector<iovec> pieces_;
};

}  // namespace isthmus
