#include "comm/engine/call.hpp"

#include <numeric>

#include "comm/base/digest.hpp"

namespace isthmus {

namespace {

// CallFingerprint::flags
constexpr unsigned kHasCounts = 1;
constexpr unsigned kIsPremultiplied = 2;
constexpr unsigned kIsUserReduction = 4;

std::string nameOfOperation(const CallFingerprint& print) {
    if ((print.flags & kIsUserReduction) != 0) return "user operation";
    if ((print.flags & kIsPremultiplied) != 0) return "premul_sum";
    return std::string(nameOf(static_cast<ReduceOp>(print.op)));
}

}  // namespace

CallFingerprint CallRequest::fingerprint() const {
    CallFingerprint print;
    print.collective = static_cast<std::uint8_t>(collective);
    print.type = static_cast<std::uint8_t>(type);
    if (reduces(collective)) print.op = static_cast<std::uint8_t>(op);
    if (hasRoot(collective)) print.root = root;
    const bool hasCounts = !counts.each.empty() || !counts.sent.empty();
    print.flags = static_cast<std::uint8_t>((hasCounts ? kHasCounts : 0) |
                                            (isPremultiplied ? kIsPremultiplied : 0) |
                                            (reduction ? kIsUserReduction : 0));
    print.elements = std::accumulate(counts.each.begin(), counts.each.end(), counts.uniform);
    print.planDigest = prepared ? prepared->digest : 0;
    if (reduction) print.planDigest = Digest().add(print.planDigest).add(reduction->name).value();
    if (listDigest != 0) print.planDigest = Digest().add(print.planDigest).add(listDigest).value();
    return print;
}

std::string describe(const CallFingerprint& print) {
    if (print.collective >= kCollectives || print.type >= kDataTypes || print.op >= kReduceOps) {
        return "a call of an unknown kind";
    }
    const auto collective = static_cast<Collective>(print.collective);
    std::string text(nameOf(collective));
    if (collective == Collective::kBarrier) return text;
    text += " " + std::string(nameOf(static_cast<DataType>(print.type)));
    text += " x " + ((print.flags & kHasCounts) != 0 && collective == Collective::kAllToAll
                         ? "counts"
                         : std::to_string(print.elements));
    if (reduces(collective)) {
        text += " " + nameOfOperation(print);
    }
    if (hasRoot(collective)) text += " root " + std::to_string(print.root);
    return text;
}

}  // namespace isthmus
