#include "comm/proof/symbolic_state.hpp"

#include <bit>
#include <utility>

namespace isthmus {

Expressions::Expressions(int ranks, int contributors) : contributing_(contributors) {
    const std::size_t words = (static_cast<std::size_t>(ranks) + 63) / 64;
    for (Rank rank = 0; rank < ranks; ++rank) {
        Contributors alone;
        alone.bits.assign(words, 0);
        alone.bits[static_cast<std::size_t>(rank) / 64] = std::uint64_t{1} << (rank % 64);
        contributors_.push_back(std::move(alone));
    }
}

int Expressions::sum(std::vector<int> operands) {
    if (operands.size() == 1) return operands[0];
    if (operands[0] > operands[1]) std::swap(operands[0], operands[1]);
    const auto [entry, isNew] =
        known_.try_emplace(operands, static_cast<int>(contributors_.size()));
    if (!isNew) return entry->second;
    Contributors all = contributors_[static_cast<std::size_t>(operands[0])];
    for (std::size_t i = 1; i < operands.size(); ++i) {
        const Contributors& more = contributors_[static_cast<std::size_t>(operands[i])];
        all.isAnyTwice = all.isAnyTwice || more.isAnyTwice;
        for (std::size_t word = 0; word < all.bits.size(); ++word) {
            all.isAnyTwice = all.isAnyTwice || (all.bits[word] & more.bits[word]) != 0;
            all.bits[word] |= more.bits[word];
        }
    }
    contributors_.push_back(std::move(all));
    return entry->second;
}

bool Expressions::isExactly(int expression, std::span<const Rank> ranks) const {
    const Contributors& found = contributors_[static_cast<std::size_t>(expression)];
    std::vector<std::uint64_t> wanted(found.bits.size(), 0);
    for (const Rank rank : ranks) {
        wanted[static_cast<std::size_t>(rank) / 64] |= std::uint64_t{1} << (rank % 64);
    }
    return !found.isAnyTwice && found.bits == wanted;
}

bool Expressions::isEverybodyOnce(int expression) const {
    const Contributors& found = contributors_[static_cast<std::size_t>(expression)];
    int bits = 0;
    for (const std::uint64_t word : found.bits) bits += std::popcount(word);
    return !found.isAnyTwice && bits == contributing_;
}

std::size_t Expressions::Hash::operator()(const std::vector<int>& operands) const {
    std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a, 64 bit: offset and prime
    for (const int operand : operands) {
        hash = (hash ^ static_cast<std::uint32_t>(operand)) * 0x100000001b3U;
    }
    return hash;
}

LocationNames::LocationNames(const std::vector<Plan>& plans, const std::vector<bool>& isInPlace)
    : operand_(Operand::of(plans.front())), isInPlace_(isInPlace) {
    begins_.push_back(0);
    for (const Plan& plan : plans) {
        const auto add = [&](std::size_t chunks) { begins_.push_back(begins_.back() + chunks); };
        add(static_cast<std::size_t>(operand_.inputChunks(plan.me)));
        add(static_cast<std::size_t>(operand_.outputChunks(plan.me)));
        add(plan.scratch.size());
        add(plan.shared.size());
    }
}

}  // namespace isthmus
