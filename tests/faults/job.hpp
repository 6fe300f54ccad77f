#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/program.hpp"

namespace isthmus::test {

using Variables = std::map<std::string, std::string>;

/// Ranks of a program as processes of this machine, with torchrun's variables. Killed when this
/// ends.
class Job {
public:
    /// `words`: what follows the name of `program`.
    explicit Job(int ranks, std::vector<std::string> words, Variables variables = {},
                 std::string program = RANK_PROGRAM);

    /// Not started: a rank that stays away.
    void leaveOut(int rank) { leftOut_ = rank; }
    /// Of one rank only.
    void set(int rank, const std::string& name, const std::string& value);
    void start();
    /// One that was left out.
    void startLate(int rank);

    int ranks() const { return static_cast<int>(perRank_.size()); }
    Program& rank(int rank) { return *programs_[rank]; }
    bool has(int rank) const { return programs_[rank] != nullptr; }

    /// Every rank has printed a line that begins so.
    bool allSay(const std::string& beginning,
                std::chrono::milliseconds limit = std::chrono::seconds(20));

private:
    std::vector<std::string> words_;
    std::string program_;
    std::vector<Variables> perRank_;
    int leftOut_ = -1;
    std::vector<std::unique_ptr<Program>> programs_;
};

/// The first line that begins so, without that; empty when there is none.
std::string lineOf(const Program& program, const std::string& beginning);

/// `small` in every run of the tests, `whole` where the variable TESTS_WHOLE is set: for
/// repetitions that find what happens once in a hundred times.
int countOf(int small, int whole);

/// A port of 127.0.0.1 that was free a moment ago.
int freePort();

}  // namespace isthmus::test
