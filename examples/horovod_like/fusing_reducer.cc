#include "fusing_reducer.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

using isthmus::Status;

namespace {

std::string quoted(const std::string& name) {
    return "\"" + name + "\"";
}

}  // namespace

FusingReducer::FusingReducer(isthmus::Communicator communicator, const Limits& limits)
    : communicator_(std::move(communicator)), limits_(limits), thread_([this] { loop(); }) {}

FusingReducer::~FusingReducer() {
    {
        const std::lock_guard lock(mutex_);
        isLeaving_ = true;
    }
    thread_.join();
}

Status FusingReducer::submit(const std::string& name, std::span<float> gradient) {
    const std::lock_guard lock(mutex_);
    if (!failure_.ok()) return failure_;
    if (!inFlight_.emplace(name, Gradient{gradient}).second)
        return Status::invalidArgument(quoted(name) + " is in flight already");
    news_.push_back(name);
    return {};
}

Status FusingReducer::wait(const std::string& name) {
    std::unique_lock lock(mutex_);
    const auto mine = inFlight_.find(name);
    if (mine == inFlight_.end())
        return Status::invalidArgument(quoted(name) + " was not submitted");
    changed_.wait(lock, [&] { return !failure_.ok() || mine->second.isAveraged; });
    if (failure_.ok()) inFlight_.erase(mine);
    return failure_;
}

Status FusingReducer::join() {
    std::unique_lock lock(mutex_);
    isJoined_ = true;
    changed_.wait(lock, [&] { return !failure_.ok() || !isJoined_; });
    return failure_;
}

void FusingReducer::loop() {
    while (!isOver_) {
        if (Status status = cycle(); !status.ok()) {
            // Whoever still waits for this rank learns of it at once.
            (void)communicator_.abort(status.what());
            const std::lock_guard lock(mutex_);
            failure_ = std::move(status);
            changed_.notify_all();
            return;
        }
        std::this_thread::sleep_for(limits_.cycle);
    }
}

Status FusingReducer::cycle() {
    const auto ranks = static_cast<std::size_t>(communicator_.ranks());
    Question mine;
    mine.givesUp = warn() ? 1 : 0;
    const std::string news = takeNews(mine);
    std::vector<Question> all(ranks);
    if (Status status = communicator_.blocking().allGather(&mine, all.data(),
                                                           sizeof(Question) / sizeof(std::uint64_t),
                                                           isthmus::DataType::kUint64);
        !status.ok()) {
        return status;
    }
    isthmus::Blocks blocks;
    std::size_t total = 0;
    for (const Question& each : all) {
        blocks.counts.push_back(each.bytes);
        total += each.bytes;
    }
    std::string everybody(total, '\0');
    if (total > 0) {
        Status status = communicator_.blocking().allGather(news, everybody, blocks);
        if (!status.ok()) return status;
    }
    std::size_t at = 0;
    joined_.clear();
    bool areLeaving = true;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto number = static_cast<int>(rank);
        if (Status status = learn(everybody.substr(at, all[rank].bytes), number); !status.ok())
            return status;
        at += all[rank].bytes;
        if (all[rank].isJoined != 0) joined_.insert(number);
        areLeaving = areLeaving && all[rank].isLeaving != 0;
    }
    if (all[0].givesUp != 0) {
        std::string what;
        for (const auto& [name, known] : known_)
            what += (what.empty() ? "" : "; ") + quoted(name) + " misses ranks " + missing(known);
        return Status::timeout("stalled too long: " + what);
    }
    if (Status status = averageWhatIsReady(joined_); !status.ok()) return status;
    if (joined_.size() == ranks) {
        const std::lock_guard lock(mutex_);
        isJoined_ = false;
        changed_.notify_all();
    }
    isOver_ = areLeaving;
    return {};
}

std::string FusingReducer::takeNews(Question& question) {
    const std::lock_guard lock(mutex_);
    std::ostringstream news;
    for (const std::string& name : news_)
        news << inFlight_[name].values.size() << ' ' << name << '\n';
    news_.clear();
    question.bytes = news.str().size();
    question.isJoined = isJoined_ ? 1 : 0;
    question.isLeaving = isLeaving_ ? 1 : 0;
    return news.str();
}

Status FusingReducer::learn(const std::string& news, int rank) {
    std::istringstream lines(news);
    std::size_t elements = 0;
    std::string name;
    while (lines >> elements && std::getline(lines.ignore(), name)) {
        const auto [entry, isNew] = known_.try_emplace(name);
        Known& known = entry->second;
        if (isNew) known.elements = elements;
        if (known.elements != elements) {
            return Status::mismatch(quoted(name) + " has " + std::to_string(elements) +
                                    " elements on rank " + std::to_string(rank) + " and " +
                                    std::to_string(known.elements) + " on rank " +
                                    std::to_string(*known.ranks.begin()));
        }
        known.ranks.insert(rank);
    }
    return {};
}

Status FusingReducer::averageWhatIsReady(const std::set<int>& joined) {
    // By name, so that every rank has the same order.
    std::vector<std::string> batch;
    std::size_t bytes = 0;
    std::vector<std::vector<std::string>> batches;
    std::size_t givers = 0;
    for (const auto& [name, known] : known_) {
        std::set<int> there = known.ranks;
        there.insert(joined.begin(), joined.end());
        if (there.size() != static_cast<std::size_t>(communicator_.ranks())) continue;
        const std::size_t more = known.elements * sizeof(float);
        // One batch has one divisor.
        const bool fits = bytes + more <= limits_.fusedBytes && known.ranks.size() == givers;
        if (!batch.empty() && !fits) batches.push_back(std::exchange(batch, {}));
        bytes = batch.empty() ? more : bytes + more;
        givers = known.ranks.size();
        batch.push_back(name);
    }
    if (!batch.empty()) batches.push_back(std::move(batch));
    for (const auto& each : batches) {
        if (Status status = average(each); !status.ok()) return status;
    }
    return {};
}

Status FusingReducer::average(std::span<const std::string> names) {
    std::size_t elements = 0;
    for (const std::string& name : names) elements += known_[name].elements;
    fused_.assign(elements, 0.0F);  // zeros are what a rank that has joined gives
    const auto forEach = [&](const auto& use) {
        const std::lock_guard lock(mutex_);
        std::size_t at = 0;
        for (const std::string& name : names) {
            const auto mine = inFlight_.find(name);
            const auto part = std::span(fused_).subspan(at, known_[name].elements);
            if (mine != inFlight_.end()) use(mine->second.values, part);
            at += part.size();
        }
    };
    forEach([](auto gradient, auto part) {
        std::copy(gradient.begin(), gradient.end(), part.begin());
    });
    if (Status status = communicator_.blocking().allReduce(fused_); !status.ok()) return status;
    const auto givers = static_cast<float>(known_[names.front()].ranks.size());
    forEach([givers](auto gradient, auto part) {
        std::transform(part.begin(), part.end(), gradient.begin(),
                       [givers](float sum) { return sum / givers; });
    });
    const std::lock_guard lock(mutex_);
    for (const std::string& name : names) {
        known_.erase(name);
        const auto mine = inFlight_.find(name);
        if (mine != inFlight_.end()) mine->second.isAveraged = true;
    }
    changed_.notify_all();
    return {};
}

std::string FusingReducer::missing(const Known& known) const {
    std::string ranks;
    for (int rank = 0; rank < communicator_.ranks(); ++rank) {
        if (known.ranks.count(rank) == 0 && joined_.count(rank) == 0)
            ranks += (ranks.empty() ? "" : " ") + std::to_string(rank);
    }
    return ranks;
}

bool FusingReducer::warn() {
    if (communicator_.rank() != 0) return false;
    bool givesUp = false;
    for (auto& [name, known] : known_) {
        const auto waited = Clock::now() - known.since;
        givesUp = givesUp || waited > limits_.giveUpAfter;
        if (known.isWarnedOf || waited < limits_.warnAfter) continue;
        known.isWarnedOf = true;
        std::fprintf(stderr, "stalled: %s has waited for %lld ms; missing ranks: %s\n",
                     quoted(name).c_str(),
                     static_cast<long long>(
                         std::chrono::duration_cast<std::chrono::milliseconds>(waited).count()),
                     missing(known).c_str());
    }
    return givesUp;
}
