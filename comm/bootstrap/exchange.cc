#include "comm/bootstrap/exchange.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <thread>

#include "comm/base/bytes.hpp"
#include "comm/base/log.hpp"

namespace isthmus {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReportEvery{10'000};
/// While rank 0 waits for an entry it looks this often whether another rank gave up for all.
constexpr milliseconds kLookForVerdictEvery{250};
/// Rank 0 publishes its verdict at the deadline; the others wait this much longer to read it.
constexpr milliseconds kVerdictSlack{300};
/// Rank 0 may serve the store, and its process may end once it has failed: the others read the
/// verdict first.
constexpr milliseconds kTimeToRead{200};
constexpr std::uint32_t kBlobMagic = 0x42485349;  // "ISHB"

/// One rank's entry: who wrote it, for how large a world, and its blob.
struct Entry {
    std::int32_t ranks = 0;
    std::string writer;
    Bytes blob;
};

std::string thisProcess() {
    char host[HOST_NAME_MAX + 1] = "";
    ::gethostname(host, HOST_NAME_MAX);
    return "process " + std::to_string(::getpid()) + " on " + host;
}

Bytes encode(const Entry& entry) {
    return ByteWriter()
        .put(kBlobMagic)
        .put(entry.ranks)
        .put(entry.writer)
        .put(std::span<const std::byte>(entry.blob))
        .take();
}

Result<Entry> decodeEntry(std::span<const std::byte> data, int rank) {
    ByteReader reader(data);
    const auto magic = reader.get<std::uint32_t>();
    Entry entry;
    entry.ranks = reader.get<std::int32_t>();
    entry.writer = reader.getText();
    const auto blob = reader.getBytes();
    if (!reader.ok() || !reader.atEnd() || magic != kBlobMagic) {
        return Status::mismatch("what rank " + std::to_string(rank) +
                                " left in the store cannot be read");
    }
    entry.blob.assign(blob.begin(), blob.end());
    return entry;
}

/// How an exchange ended, as rank 0 publishes it: the blobs in rank order, or why there are none.
struct Verdict {
    Status status;
    std::vector<Bytes> blobs;
};

Bytes encode(const Verdict& verdict) {
    ByteWriter writer;
    writer.put(verdict.status.code()).put(verdict.status.what());
    writer.put(static_cast<std::uint32_t>(verdict.blobs.size()));
    for (const Bytes& blob : verdict.blobs) writer.put(std::span<const std::byte>(blob));
    return writer.take();
}

Result<std::vector<Bytes>> decodeVerdict(std::span<const std::byte> data, int ranks) {
    ByteReader reader(data);
    const auto code = reader.get<Status::Code>();
    const std::string what = reader.getText();
    const auto blobs = reader.get<std::uint32_t>();
    if (reader.ok() && code != Status::Code::kOk) return Status(code, what);
    if (reader.ok() && blobs != static_cast<std::uint32_t>(ranks)) {
        return Status::mismatch("rank 0 counts " + std::to_string(blobs) +
                                " ranks, this rank was given " + std::to_string(ranks));
    }
    std::vector<Bytes> all;
    for (int i = 0; i < ranks && reader.ok(); ++i) {
        const auto blob = reader.getBytes();
        all.emplace_back(blob.begin(), blob.end());
    }
    if (!reader.ok() || !reader.atEnd()) {
        return Status::mismatch("what rank 0 published in the store cannot be read");
    }
    return all;
}

/// One call of exchange().
class Exchange {
public:
    Exchange(Store& store, std::string_view prefix, int rank, int ranks, Deadline deadline)
        : store_(store),
          prefix_(prefix),
          rank_(rank),
          ranks_(ranks),
          deadline_(deadline),
          limit_(timeLeft(deadline)) {}

    Result<std::vector<Bytes>> run(const Bytes& mine) {
        const Bytes entry = encode(Entry{ranks_, thisProcess(), mine});
        if (const Status written = store_.set(keyOf(rank_), entry); !written.ok()) {
            return written.code() == Status::Code::kMismatch ? refuseSecond() : written;
        }
        if (rank_ == 0) {
            const Verdict collected = collect();
            const Bytes verdict = encode(collected);
            const Status published = store_.set(verdictKey(), verdict);
            if (!collected.status.ok()) std::this_thread::sleep_for(kTimeToRead);
            // kMismatch: another process published a failure first, which then holds for all.
            if (!published.ok() && published.code() != Status::Code::kMismatch) return published;
            if (published.ok()) return decodeVerdict(verdict, ranks_);
        }
        return awaitVerdict();
    }

private:
    std::string keyOf(int rank) const { return prefix_ + "/rank/" + std::to_string(rank); }
    std::string verdictKey() const { return prefix_ + "/verdict"; }

    /// Somebody else is this rank already. Tells all, unless they have gone on without us.
    Status refuseSecond() {
        const auto held = store_.get(keyOf(rank_), milliseconds(0));
        std::string other = "another process";
        if (held.ok()) {
            if (const auto entry = decodeEntry(*held, rank_); entry.ok()) other = entry->writer;
        }
        Verdict verdict{Status::mismatch("two processes claim rank " + std::to_string(rank_) +
                                         ": " + other + " and " + thisProcess()),
                        {}};
        if (const Status told = store_.set(verdictKey(), encode(verdict)); !told.ok()) {
            log(LogLevel::kDebug, "the others were not told: " + told.what());
        }
        return verdict.status;
    }

    Verdict collect() {
        Verdict verdict;
        for (int rank = 0; rank < ranks_; ++rank) {
            const auto value = waitFor(keyOf(rank), deadline_);
            if (!value.ok()) return {value.status(), {}};
            auto entry = decodeEntry(*value, rank);
            if (!entry.ok()) return {entry.status(), {}};
            if (entry->ranks != ranks_) {
                return {Status::mismatch("rank " + std::to_string(rank) + " (" + entry->writer +
                                         ") was given " + std::to_string(entry->ranks) +
                                         " ranks, rank 0 (" + thisProcess() + ") " +
                                         std::to_string(ranks_)),
                        {}};
            }
            verdict.blobs.push_back(std::move(entry->blob));
        }
        return verdict;
    }

    Result<std::vector<Bytes>> awaitVerdict() {
        const auto value = waitFor(verdictKey(), deadline_ + kVerdictSlack);
        if (!value.ok()) return value.status();
        return decodeVerdict(*value, ranks_);
    }

    /// Gets `key`, and says every 10 s who is missing.
    Result<Bytes> waitFor(const std::string& key, Deadline until) {
        auto nextReport = deadlineIn(kReportEvery);
        for (;;) {
            const auto slice = rank_ == 0 ? kLookForVerdictEvery : kReportEvery;
            auto value = store_.get(key, std::min(timeLeft(until), slice));
            if (value.ok() || value.status().code() != Status::Code::kTimeout) return value;
            if (rank_ == 0) ISTHMUS_TRY(verdictOfOthers());
            const bool isOver = timeLeft(until).count() == 0;
            if (!isOver && timeLeft(nextReport).count() > 0) continue;
            const auto missing = missingRanks();
            if (!missing.ok()) return missing.status();
            std::string who = missing->size() == 1 ? "rank " : "ranks ";
            who += rankList(*missing) + " of " + std::to_string(ranks_);
            if (missing->empty()) who = "rank 0, which has not gathered the others' entries,";
            if (isOver) {
                return Status::timeout("waited " + std::to_string(limit_.count()) + " ms for " +
                                       who);
            }
            log(LogLevel::kWarning, "waiting for " + who + " (" +
                                        std::to_string(timeLeft(until).count() / 1000) +
                                        " s left)");
            nextReport = deadlineIn(kReportEvery);
        }
    }

    /// A failure that another rank published while rank 0 still waits for entries.
    Status verdictOfOthers() {
        const auto isThere = store_.has(verdictKey());
        if (!isThere.ok()) return isThere.status();
        if (!*isThere) return {};
        const auto value = store_.get(verdictKey(), milliseconds(0));
        if (!value.ok()) return value.status();
        const auto decoded = decodeVerdict(*value, ranks_);
        return decoded.ok() ? Status() : decoded.status();
    }

    Result<std::vector<int>> missingRanks() {
        std::vector<int> missing;
        for (int rank = 0; rank < ranks_; ++rank) {
            const auto isThere = store_.has(keyOf(rank));
            if (!isThere.ok()) return isThere.status();
            if (!*isThere) missing.push_back(rank);
        }
        return missing;
    }

    Store& store_;
    const std::string prefix_;
    const int rank_;
    const int ranks_;
    const Deadline deadline_;
    const milliseconds limit_;
};

}  // namespace

Result<std::vector<Bytes>> exchange(Store& store, std::string_view prefix, int rank, int ranks,
                                    const Bytes& mine, Deadline deadline) {
    if (ranks < 1 || rank < 0 || rank >= ranks) {
        return Status::invalidArgument("rank " + std::to_string(rank) + " of " +
                                       std::to_string(ranks) + " ranks cannot be");
    }
    auto all = Exchange(store, prefix, rank, ranks, deadline).run(mine);
    return all.ok() ? std::move(all) : Result<std::vector<Bytes>>(all.status().within(prefix));
}

Status eraseExchange(Store& store, std::string_view prefix, int ranks) {
    const std::string name(prefix);
    for (int rank = 0; rank < ranks; ++rank) {
        ISTHMUS_TRY(store.erase(name + "/rank/" + std::to_string(rank)));
    }
    return store.erase(name + "/verdict");
}

Result<JobKey> agreeOnJobKey(Store& store, std::string_view prefix, int rank, Deadline deadline) {
    const std::string name = std::string(prefix) + "/job key";
    if (rank == 0) {
        const auto key = JobKey::random();
        if (!key.ok()) return key.status();
        const Status set = store.set(name, Bytes(key->bytes.begin(), key->bytes.end()));
        if (set.code() == Status::Code::kMismatch) {
            return Status::mismatch("two processes claim rank 0: " + thisProcess() +
                                    " and another, which was first");
        }
        ISTHMUS_TRY(set);
        return *key;
    }
    const auto value = store.get(name, timeLeft(deadline));
    if (!value.ok()) return value.status().within("rank 0 gave no job key");
    JobKey key;
    if (value->size() != key.bytes.size()) return Status::mismatch("rank 0's job key is no key");
    std::copy(value->begin(), value->end(), key.bytes.begin());
    return key;
}

std::string rankList(const std::vector<int>& ranks) {
    std::string text;
    for (std::size_t first = 0; first < ranks.size();) {
        std::size_t last = first;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        if (!text.empty()) text += ", ";
        text += std::to_string(ranks[first]);
        if (last > first) text += last == first + 1 ? ", " : "-";
        if (last > first) text += std::to_string(ranks[last]);
        first = last + 1;
    }
    return text;
}

}  // namespace isthmus
