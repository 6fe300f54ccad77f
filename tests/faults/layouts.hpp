#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "tests/faults/job.hpp"

namespace isthmus::test {

/// Where the ranks of a job are.
struct Layout {
    const char* name;
    const char* nodes;  ///< emulated ones, "2x2"; empty: processes of this machine as it is
    int ranks;
    bool isShared;  ///< inside a node by shared memory, else by TCP too

    friend std::ostream& operator<<(std::ostream& out, const Layout& layout) {
        return out << layout.name;
    }
};

/// The nodes of a layout, while this lives.
class Place {
public:
    explicit Place(const Layout& layout);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    const Layout& layout() const { return layout_; }
    const std::string& cluster() const { return cluster_; }
    /// Why there are no such nodes on this machine; empty: there are.
    const std::string& missing() const { return missing_; }

private:
    const Layout layout_;
    std::string cluster_;
    std::string missing_;
};

/// A job of stress_program at a place. Its ranks outlive each other.
class PlacedJob {
public:
    PlacedJob(const Place& place, const std::string& words, const Variables& variables = {});
    ~PlacedJob();
    PlacedJob(const PlacedJob&) = delete;
    PlacedJob& operator=(const PlacedJob&) = delete;

    /// What `rank` printed after `beginning`, and a blank; empty: nothing yet.
    std::string said(int rank, const std::string& beginning) const;
    /// Standard error of all ranks.
    std::string errors() const;
    std::string everything() const;

private:
    std::unique_ptr<Job> job_;
    std::unique_ptr<Program> program_;
};

}  // namespace isthmus::test
