#include "comm/algorithm/fractions.hpp"

#include <numeric>

namespace isthmus {

Fraction reduced(std::int64_t numerator, std::int64_t denominator) {
    const std::int64_t common = std::gcd(numerator, denominator);
    return {numerator / common, denominator / common};
}

bool isLess(const Fraction& a, const Fraction& b) {
    return a.numerator * b.denominator < b.numerator * a.denominator;
}

Fraction between(const Fraction& from, const Fraction& to, int part, int parts) {
    const std::int64_t common = std::lcm(from.denominator, to.denominator);
    const std::int64_t low = from.numerator * (common / from.denominator);
    const std::int64_t high = to.numerator * (common / to.denominator);
    return reduced(low * parts + (high - low) * part, common * parts);
}

}  // namespace isthmus
