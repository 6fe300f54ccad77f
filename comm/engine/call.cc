#include "comm/engine/call.hpp"

#include <numeric>

#include "comm/algorithm/catalogue.hpp"
#include "comm/base/digest.hpp"

namespace isthmus {

namespace {

// CallFingerprint::flags
constexpr unsigned kHasCounts = 1;
constexpr unsigned kIsPremultiplied = 2;
constexpr unsigned kIsUserReduction = 4;
constexpr unsigned kIsList = 8;
constexpr unsigned kIsDeterministic = 16;
constexpr unsigned kIsWidened = 32;

// The plan's digest leaves its first byte to the algorithm, so that a message can name it.
constexpr int kAlgorithmShift = 56;
constexpr std::uint64_t kDigestMask = (std::uint64_t{1} << kAlgorithmShift) - 1;

std::string nameOfOperation(const CallFingerprint& print) {
    if ((print.flags & kIsUserReduction) != 0) return "user operation";
    if ((print.flags & kIsPremultiplied) != 0) return "premul_sum";
    return std::string(nameOf(static_cast<ReduceOp>(print.op)));
}

std::string algorithmOf(const CallFingerprint& print) {
    const std::uint64_t place = print.planDigest >> kAlgorithmShift;
    if (place == 0 || place > catalogue().size()) return "of an unknown plan";
    return "by " + std::string(catalogue()[place - 1].name);
}

}  // namespace

CallFingerprint CallRequest::fingerprint() const {
    CallFingerprint print;
    print.collective = static_cast<std::uint8_t>(collective);
    print.type = static_cast<std::uint8_t>(type);
    if (reduces(collective)) print.op = static_cast<std::uint8_t>(op);
    if (hasRoot(collective)) print.root = root;
    const bool hasCounts = !counts.each.empty() || !counts.sent.empty();
    print.flags = static_cast<std::uint8_t>(
        (hasCounts ? kHasCounts : 0) | (isPremultiplied ? kIsPremultiplied : 0) |
        (reduction ? kIsUserReduction : 0) | (listDigest != 0 ? kIsList : 0) |
        (isDeterministic && reduces(collective) ? kIsDeterministic : 0) |
        (isWidened ? kIsWidened : 0));
    print.elements = std::accumulate(counts.each.begin(), counts.each.end(), counts.uniform);
    print.planDigest = prepared ? prepared->digest : 0;
    if (reduction) print.planDigest = Digest().add(print.planDigest).add(reduction->name).value();
    if (listDigest != 0) print.planDigest = Digest().add(print.planDigest).add(listDigest).value();
    print.planDigest &= kDigestMask;
    if (prepared) print.planDigest |= std::uint64_t{prepared->algorithm} << kAlgorithmShift;
    return print;
}

std::uint64_t blockBytes(const CallRequest& call, Rank peer, bool isSent) {
    const auto& blocks = isSent ? call.counts.sent : call.counts.received;
    return blocks[peer] * bytesOf(call.type);
}

std::string describe(const CallFingerprint& print, std::span<const int> globalRanks) {
    if (print.collective >= kCollectives || print.type >= kDataTypes || print.op >= kReduceOps) {
        return "a call of an unknown kind";
    }
    const auto collective = static_cast<Collective>(print.collective);
    std::string text(nameOf(collective));
    if (collective == Collective::kBarrier) return text;
    text += " " + std::string(nameOf(static_cast<DataType>(print.type)));
    const bool hasCounts = (print.flags & kHasCounts) != 0;
    if (collective == Collective::kAllToAll && hasCounts) {
        text += " x counts";
    } else {
        text += " x " + std::to_string(print.elements);
        if (hasCounts) text += " in blocks of given sizes";
    }
    if ((print.flags & kIsList) != 0) text += " in a list";
    if (reduces(collective)) text += " " + nameOfOperation(print);
    if ((print.flags & kIsWidened) != 0) text += " of 16 bits rounded once";
    if ((print.flags & kIsDeterministic) != 0) text += " deterministic";
    if (hasRoot(collective)) {
        const bool isKnown =
            print.root >= 0 && static_cast<std::size_t>(print.root) < globalRanks.size();
        text += " root " + std::to_string(isKnown ? globalRanks[print.root] : print.root);
    }
    return text;
}

Contrast contrast(const CallFingerprint& mine, const CallFingerprint& theirs,
                  std::span<const int> globalRanks) {
    Contrast found{describe(mine, globalRanks), describe(theirs, globalRanks), ""};
    if (found.mine != found.theirs) return found;
    if (mine.planDigest >> kAlgorithmShift != theirs.planDigest >> kAlgorithmShift) {
        found.mine += " " + algorithmOf(mine);
        found.theirs += " " + algorithmOf(theirs);
    } else if ((mine.flags & kIsUserReduction) != 0) {
        found.hint = " (the names of the user operations, or counts, differ)";
    } else if ((mine.flags & (kHasCounts | kIsList)) != 0) {
        found.hint = " (the same in all, but the sizes of single blocks differ)";
    } else {
        found.hint = " (the same call by another plan: do options differ between the ranks?)";
    }
    return found;
}

}  // namespace isthmus
