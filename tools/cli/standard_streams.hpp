#pragma once

#include <isthmus/status.hpp>

namespace isthmus::cli {

/// Descriptors 0 to 2 that the caller closed become /dev/null: no file or pipe of ours may get
/// their numbers and be written to by whoever prints.
void openStandardStreams();

/// Everything that was printed to standard output has arrived there.
Status flushOutput();

/// Why a write to standard output failed.
Status outputFailed(int error);

}  // namespace isthmus::cli
