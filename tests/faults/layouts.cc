#include "tests/faults/layouts.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <sstream>

namespace isthmus::test {

Place::Place(const Layout& layout) : layout_(layout) {
    if (*layout.nodes == '\0') return;
    if (isthmusProgram().empty()) {
        missing_ = "this build has no isthmus program";
        return;
    }
    const std::string name = std::string("moments-") + layout.name + std::to_string(::getpid());
    const Ended up = isthmus({"cluster", "up", layout.nodes, "--name", name});
    if (up.exitCode == 0) {
        cluster_ = name;
    } else {
        EXPECT_EQ(up.exitCode, 2) << up.error;
        missing_ = "no emulated nodes on this machine: " + up.error;
    }
}

Place::~Place() {
    if (!cluster_.empty()) isthmus({"cluster", "down", "--name", cluster_});
}

// A shell is each rank's process for the launcher, which would end the job at the first that ends.
PlacedJob::PlacedJob(const Place& place, const std::string& words, const Variables& variables) {
    Variables all = variables;
    all["ISTHMUS_SHM"] = place.layout().isShared ? "1" : "0";
    if (place.cluster().empty()) {
        std::istringstream stream(words);
        std::vector<std::string> list;
        for (std::string word; stream >> word;) list.push_back(word);
        job_ = std::make_unique<Job>(place.layout().ranks, list, all, STRESS_PROGRAM);
        job_->start();
        return;
    }
    std::string script = "export";
    for (const auto& [name, value] : all) script.append(" ").append(name + "=" + value);
    script += "; " STRESS_PROGRAM " " + words + "; exec sleep 30";
    program_ = std::make_unique<Program>(std::vector<std::string>{
        isthmusProgram(), "run", "--on", place.cluster(), "--", "sh", "-c", script});
}

PlacedJob::~PlacedJob() {
    if (job_ != nullptr) {
        for (int rank = 0; rank < job_->ranks(); ++rank) job_->rank(rank).signal(SIGCONT);
        return;
    }
    program_->signal(SIGTERM);
    EXPECT_GE(program_->wait(std::chrono::seconds(20)), 0) << "the launcher does not end";
}

std::string PlacedJob::said(int rank, const std::string& beginning) const {
    std::string prefix = beginning;
    if (job_ == nullptr) prefix = "[" + std::to_string(rank) + "] " + beginning;
    const Program& program = job_ != nullptr ? job_->rank(rank) : *program_;
    for (const std::string& line : linesOf(program.output())) {
        if (line.rfind(prefix, 0) == 0) return line.substr(prefix.size()) + " ";
    }
    return "";
}

std::string PlacedJob::errors() const {
    if (job_ == nullptr) return program_->error();
    std::string text;
    for (int rank = 0; rank < job_->ranks(); ++rank) text += job_->rank(rank).error();
    return text;
}

std::string PlacedJob::everything() const {
    std::string text = errors();
    if (job_ == nullptr) return text + program_->output();
    for (int rank = 0; rank < job_->ranks(); ++rank)
        text += std::to_string(rank) + ": " + job_->rank(rank).output();
    return text;
}

}  // namespace isthmus::test
