#pragma once

#include <string>

namespace isthmus {

/// libfabric's shm keeps a file in /dev/shm for each endpoint and removes it when the endpoint is
/// closed or a signal that it takes ends the process. Any thread.

/// A name for an endpoint of this process that nobody guesses. Its file goes when the process
/// exits.
std::string newLocalName();

/// Removes the files of processes of this PID namespace that are gone.
void sweepLocalNames();

}  // namespace isthmus
