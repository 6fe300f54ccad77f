#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <utility>

namespace isthmus::test {

/// TCP ports of 0.0.0.0, 127.0.0.1 or any other address on which `pid` listens (proc(5)).
std::set<std::pair<std::string, int>> doorsOf(pid_t pid);

/// Open descriptors of a process, and kilobytes of memory that are its own.
int descriptorsOf(pid_t pid);
long kilobytesOf(pid_t pid);

/// A connection to a door; -1: none was made within a second.
int knock(const std::string& host, int port);

}  // namespace isthmus::test
