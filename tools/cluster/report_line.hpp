#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include <isthmus/status.hpp>

#include "comm/base/unique_fd.hpp"

namespace isthmus::cluster {

/// What the keeper and the nodes tell the process that brings the cluster up.
struct Report {
    enum class Kind : char {
        kReady = 'r',  ///< keeper: all nodes are made; a node: it is complete
        kLimit = 'l',  ///< this machine could not do something; the rest works
        kFailed = 'f',
    };
    Kind kind = Kind::kFailed;
    int node = -1;  ///< -1: the keeper
    std::string text;
    pid_t sender = 0;  ///< as the reader sees it, whatever PID namespace it is in
};

/// A socket pair that keeps messages whole and tells the reader who sent them (unix(7),
/// SCM_CREDENTIALS).
struct ReportPair {
    UniqueFd reader;
    UniqueFd writer;
};

Result<ReportPair> makeReportPair();

/// May be called by any process that inherited the writer.
void sendReport(int writer, const Report& report);

/// Waits for the next; kTimeout after `limit`, kPeerLost when no writer is left.
Result<Report> receiveReport(int reader, std::chrono::milliseconds limit);

}  // namespace isthmus::cluster
