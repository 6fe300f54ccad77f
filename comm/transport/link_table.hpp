#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "comm/base/clock.hpp"
#include "comm/transport/transport.hpp"

namespace isthmus {

/// The links of a transport, one to each peer, and what peers bring before this process has a link
/// to them (`Guest`: a socket, or more, which Link::takeIncoming takes). Iterators stay valid when
/// a link is added. Engine thread.
template <typename Link, typename Guest>
class LinkTable {
public:
    /// A peer brings at most `guestsOfOne`; more are dropped.
    explicit LinkTable(std::size_t guestsOfOne = 1) : guestsOfOne_(guestsOfOne) {}

    auto begin() const { return links_.begin(); }
    auto end() const { return links_.end(); }

    /// Null: there is none.
    Link* find(const ProcessId& peer) const {
        const auto found = links_.find(peer);
        return found == links_.end() ? nullptr : found->second.get();
    }

    /// The peer's only one; takes what the peer has brought.
    Link& add(const ProcessId& peer, std::unique_ptr<Link> made) {
        Link& link = *links_.emplace(peer, std::move(made)).first->second;
        const auto [first, last] = early_.equal_range(peer);
        for (auto guest = first; guest != last; ++guest) {
            link.takeIncoming(std::move(guest->second));
        }
        early_.erase(first, last);
        return link;
    }

    void welcome(const ProcessId& peer, Guest guest) {
        if (Link* const link = find(peer)) {
            link->takeIncoming(std::move(guest));  // which closes one too many
        } else if (early_.size() < kMostEarly && early_.count(peer) < guestsOfOne_) {
            early_.emplace(peer, std::move(guest));
        }
    }

    void forgetGuests() { early_.clear(); }
    void clear() { links_.clear(); }

private:
    static constexpr std::size_t kMostEarly = 4096;

    const std::size_t guestsOfOne_;
    std::multimap<ProcessId, Guest> early_;
    std::map<ProcessId, std::unique_ptr<Link>> links_;
};

/// For the end of a transport: pushes out what is ready, then a goodbye to each peer; until
/// `deadline` at most. `rest` runs while no link of `links` (by peer) can go on alone: it moves
/// bytes, or waits a little.
template <typename Links, typename Rest>
void sayGoodbye(const Links& links, Time deadline, Rest rest) {
    const SteadyClock clock;
    const auto flush = [&] {
        while (true) {
            bool isBusy = false;
            for (const auto& [peer, link] : links) isBusy = link->flush() || isBusy;
            if (!isBusy || clock.now() >= deadline) return;
            rest();
        }
    };
    flush();
    for (const auto& [peer, link] : links) {
        if (link->endpoint().state() == Endpoint::State::kOpen) link->endpoint().sayGoodbye();
    }
    flush();
}

}  // namespace isthmus
