#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <isthmus/communicator.hpp>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

/// Averages named gradients over the ranks, which may finish them in different orders.
///
/// A thread of its own asks all ranks, over and over, what is ready; what is ready everywhere is
/// packed into one buffer and averaged by one all-reduce. The way of Horovod (Sergeev and Del
/// Balso, 2018, arXiv:1802.05799).
class FusingReducer {
public:
    struct Limits {
        std::size_t fusedBytes = 1 << 20;    ///< of one all-reduce; a larger tensor goes alone
        std::chrono::milliseconds cycle{1};  ///< between two questions
        std::chrono::milliseconds warnAfter{10000};  ///< that a tensor waits for some ranks
        std::chrono::milliseconds giveUpAfter{60000};
    };

    FusingReducer(isthmus::Communicator communicator, const Limits& limits);
    FusingReducer(const FusingReducer&) = delete;
    FusingReducer& operator=(const FusingReducer&) = delete;
    /// Waits until every rank has come here too, or the job has failed.
    ~FusingReducer();

    /// Hands over `gradient` until wait(name). kInvalidArgument: the name is in flight already.
    isthmus::Status submit(const std::string& name, std::span<float> gradient);
    /// Returns when the gradient is the average over the ranks that gave one. kInvalidArgument: no
    /// such gradient was submitted.
    isthmus::Status wait(const std::string& name);
    /// For a rank without further batches: helps the others until all have joined.
    isthmus::Status join();

private:
    using Clock = std::chrono::steady_clock;

    struct Gradient {
        std::span<float> values;
        bool isAveraged = false;
    };
    /// What all ranks know of a tensor; the same everywhere after each cycle.
    struct Known {
        std::size_t elements = 0;
        std::set<int> ranks;
        Clock::time_point since = Clock::now();
        bool isWarnedOf = false;
    };
    /// What each rank says first in a cycle.
    struct Question {
        std::uint64_t bytes = 0;  ///< of its news
        std::uint64_t isJoined = 0;
        std::uint64_t isLeaving = 0;
        std::uint64_t givesUp = 0;  ///< rank 0 decides that for all
    };

    void loop();
    isthmus::Status cycle();
    std::string takeNews(Question& question);
    isthmus::Status learn(const std::string& news, int rank);
    isthmus::Status averageWhatIsReady(const std::set<int>& joined);
    isthmus::Status average(std::span<const std::string> names);
    bool warn();
    std::string missing(const Known& known) const;

    isthmus::Communicator communicator_;
    const Limits limits_;
    isthmus::ArenaVector<float> fused_;
    std::map<std::string, Known> known_;  // the thread's own, as the next two
    std::set<int> joined_;
    bool isOver_ = false;

    std::mutex mutex_;
    std::condition_variable changed_;
    // Guarded by mutex_.
    std::map<std::string, Gradient> inFlight_;
    std::vector<std::string> news_;
    isthmus::Status failure_;
    bool isJoined_ = false;
    bool isLeaving_ = false;
    std::thread thread_;  // last: starts when all else is there
};
