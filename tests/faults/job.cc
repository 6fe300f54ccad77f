#include "tests/faults/job.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "comm/base/knobs.hpp"

namespace isthmus::test {

Job::Job(int ranks, std::vector<std::string> words, Variables variables, std::string program)
    : words_(std::move(words)), program_(std::move(program)) {
    variables.try_emplace("MASTER_ADDR", "127.0.0.1");
    variables.try_emplace("MASTER_PORT", std::to_string(freePort()));
    variables.try_emplace("WORLD_SIZE", std::to_string(ranks));
    variables.try_emplace("LOCAL_WORLD_SIZE", std::to_string(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
        perRank_.push_back(variables);
        set(rank, "RANK", std::to_string(rank));
        set(rank, "LOCAL_RANK", std::to_string(rank));
    }
}

void Job::set(int rank, const std::string& name, const std::string& value) {
    perRank_[rank][name] = value;
}

void Job::start() {
    programs_.resize(perRank_.size());
    for (int rank = 0; rank < ranks(); ++rank) {
        if (rank != leftOut_) startLate(rank);
    }
}

void Job::startLate(int rank) {
    std::vector<std::string> words = {"env"};
    for (const auto& [name, value] : perRank_[rank]) words.push_back(name + "=" + value);
    words.push_back(program_);
    words.insert(words.end(), words_.begin(), words_.end());
    programs_[rank] = std::make_unique<Program>(words);
}

bool Job::allSay(const std::string& beginning, std::chrono::milliseconds limit) {
    const auto hasSaid = [&](const std::unique_ptr<Program>& program) {
        if (program == nullptr) return true;
        const auto lines = linesOf(program->output());
        return std::any_of(lines.begin(), lines.end(),
                           [&](const std::string& line) { return line.rfind(beginning, 0) == 0; });
    };
    return becomes([&] { return std::all_of(programs_.begin(), programs_.end(), hasSaid); }, limit);
}

std::string lineOf(const Program& program, const std::string& beginning) {
    for (const std::string& line : linesOf(program.output())) {
        if (line.rfind(beginning, 0) == 0) return line.substr(beginning.size());
    }
    return "";
}

int countOf(int small, int whole) {
    return environmentVariable("TESTS_WHOLE").has_value() ? whole : small;
}

int freePort() {
    const int holder = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof place;
    (void)::bind(holder, reinterpret_cast<sockaddr*>(&place), sizeof place);
    (void)::getsockname(holder, reinterpret_cast<sockaddr*>(&place), &bytes);
    ::close(holder);
    return ntohs(place.sin_port);
}

}  // namespace isthmus::test
