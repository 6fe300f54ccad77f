#include "torch_plugin/csrc/errors.hpp"

#include <c10/util/Exception.h>

namespace isthmus::glue {
namespace {

template <typename Error>
std::exception_ptr make(std::string message) {
    return std::make_exception_ptr(
        Error({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, std::move(message)));
}

}  // namespace

Outcome Outcome::of(isthmusResult_t result) {
    if (result == isthmusSuccess) return {};
    std::string text = isthmusGetLastError(nullptr);
    if (text.empty()) text = isthmusGetErrorString(result);
    return {result, std::move(text)};
}

std::exception_ptr exceptionOf(const Outcome& outcome, const char* operation) {
    const std::string where = std::string("isthmus: ") + operation + ": ";
    switch (outcome.result) {
    case isthmusSuccess:
        return nullptr;
    case isthmusInvalidArgument:
        return make<c10::ValueError>(where + outcome.text);
    case isthmusUnsupported:
        return make<c10::NotImplementedError>(where + outcome.text);
    case isthmusTimeout:
        return make<c10::DistBackendError>(where + "a timeout passed: " + outcome.text);
    default:
        return make<c10::DistBackendError>(where + outcome.text);
    }
}

void throwUnlessOk(const Outcome& outcome, const char* operation) {
    if (!outcome.ok()) std::rethrow_exception(exceptionOf(outcome, operation));
}

}  // namespace isthmus::glue
