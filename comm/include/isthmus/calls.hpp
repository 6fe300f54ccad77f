#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <isthmus/isthmus.h>
#include <isthmus/blocks.hpp>
#include <isthmus/options.hpp>
#include <isthmus/status.hpp>
#include <isthmus/types.hpp>
#include <isthmus/work.hpp>

namespace isthmus {
inline namespace v1 {

/// Two buffers of one element type.
template <typename A, typename B>
concept SameElements =
    std::same_as<std::remove_cv_t<detail::ElementOf<A>>, std::remove_cv_t<detail::ElementOf<B>>>;

namespace detail {

/// What all calls on a Communicator have in common: how one gives its Work or its Status.
template <typename Answer>
class Calls {
protected:
    static constexpr bool kIsStarted = std::is_same_v<Answer, Work>;

    Calls(isthmusComm_t communicator, Rank rank, int ranks)
        : communicator_(communicator), rank_(rank), ranks_(ranks) {}

    template <typename B>
    static constexpr DataType kTypeOf = DataTypeOf<std::remove_cv_t<ElementOf<B>>>::value;

    template <typename Call>
    static Answer answer(const CallOptions& options, const Call& call) {
        const isthmusCallOptions_t how = toC(options);
        if constexpr (kIsStarted) {
            return Work::begin(
                [&](isthmusRequest_t* request, int*) { return call(&how, request); });
        } else {
            return statusOf(call(&how, static_cast<isthmusRequest_t*>(nullptr)));
        }
    }

    std::size_t timesRanks(std::size_t elements) const {
        return elements * static_cast<std::size_t>(ranks_);
    }

    static Status expect(const char* what, std::size_t elements, std::size_t needed) {
        return expectElements(what, elements, needed);
    }
    Status expect(const char* what, std::size_t elements, const Blocks& blocks) const {
        return expectBlocks(what, elements, blocks, ranks_);
    }
    Status expectMine(const char* what, std::size_t elements, const Blocks& blocks) const {
        return expect(what, elements, blocks.counts[static_cast<std::size_t>(rank_)]);
    }

    isthmusComm_t communicator_;
    Rank rank_;
    int ranks_;
};

}  // namespace detail
}  // namespace v1
}  // namespace isthmus
