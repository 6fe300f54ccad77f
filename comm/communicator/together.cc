#include "comm/communicator/together.hpp"

#include <atomic>
#include <utility>

namespace isthmus {

std::shared_ptr<Work> together(const std::vector<std::shared_ptr<Work>>& works,
                               std::function<void()> finish) {
    struct Rest {
        std::vector<std::shared_ptr<Work>> works;
        std::function<void()> finish;
        std::shared_ptr<Work> whole = std::make_shared<Work>();
        std::atomic<std::size_t> left;

        void oneIsDone() {
            // Both ways: what the others did is seen by the last.
            if (left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
            Status first;
            for (const auto& work : std::exchange(works, {})) {
                if (first.ok()) first = work->status();
            }
            if (first.ok() && finish) finish();
            whole->complete(std::move(first));
        }
    };
    auto rest = std::make_shared<Rest>();
    rest->works = works;
    rest->finish = std::move(finish);
    rest->left = works.size() + 1;
    for (const auto& work : works) work->onComplete([rest](const Status&) { rest->oneIsDone(); });
    auto whole = rest->whole;
    rest->oneIsDone();
    return whole;
}

}  // namespace isthmus
