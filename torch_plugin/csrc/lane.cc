#include "torch_plugin/csrc/lane.hpp"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "torch_plugin/csrc/work.hpp"

namespace isthmus::glue {

struct Lane::Queue {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<c10::intrusive_ptr<Work>> works;
    bool isEnding = false;
};

std::shared_ptr<Lane> Lane::make(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks,
                                 const GroupSettings& settings) {
    auto prefixed = c10::make_intrusive<c10d::PrefixStore>("lane", store);
    GroupSettings own = settings;
    own.name += " (lane)";
    return std::shared_ptr<Lane>(
        new Lane(Communicator::make(std::move(prefixed), rank, ranks, own)));
}

Lane::Lane(std::shared_ptr<Communicator> communicator)
    : communicator_(std::move(communicator)), queue_(std::make_shared<Queue>()) {
    Executor::instance().start();
    std::thread([queue = queue_] { run(queue); }).detach();
}

Lane::~Lane() {
    const std::lock_guard lock(queue_->mutex);
    queue_->isEnding = true;
    queue_->wake.notify_one();
}

void Lane::post(c10::intrusive_ptr<Work> work) {
    const std::lock_guard lock(queue_->mutex);
    queue_->works.push_back(std::move(work));
    queue_->wake.notify_one();
}

Outcome Lane::close() {
    communicator_->drain();
    return communicator_->close();
}

void Lane::run(const std::shared_ptr<Queue>& queue) {
    pthread_setname_np(pthread_self(), "isthmus-lane");
    std::unique_lock lock(queue->mutex);
    while (true) {
        queue->wake.wait(lock, [&] { return queue->isEnding || !queue->works.empty(); });
        if (queue->works.empty()) return;
        c10::intrusive_ptr<Work> work = std::move(queue->works.front());
        queue->works.pop_front();
        lock.unlock();
        Work::runOnLane(std::move(work));
        lock.lock();
    }
}

}  // namespace isthmus::glue
