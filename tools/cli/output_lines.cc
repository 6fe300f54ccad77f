#include "tools/cli/output_lines.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace isthmus::cli {
namespace {

constexpr std::size_t kMaxLineBytes = 1 << 20;  // a stream without line ends must not fill memory

}  // namespace

void OutputLines::append(std::string& lines, std::string_view line) const {
    lines += prefix_;
    lines += line;
    lines += '\n';
}

std::string OutputLines::add(std::string_view piece) {
    open_ += piece;
    std::string lines;
    std::string_view rest = open_;
    for (;;) {
        const std::size_t end = rest.find_first_of("\r\n");
        if (end == rest.npos) break;
        if (rest[end] == '\r' && end + 1 == rest.size()) break;  // "\r\n" may be on its way
        const bool isPair = rest[end] == '\r' && rest[end + 1] == '\n';
        append(lines, rest.substr(0, end));
        rest.remove_prefix(end + (isPair ? 2 : 1));
    }
    if (rest.size() > kMaxLineBytes) {
        append(lines, rest);
        rest = {};
    }
    open_ = std::string(rest);
    return lines;
}

std::string OutputLines::finish() {
    std::string lines;
    if (!open_.empty() && open_.back() == '\r') open_.pop_back();
    if (!open_.empty()) append(lines, open_);
    open_.clear();
    return lines;
}

bool writeWhole(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t put = ::write(fd, text.data(), text.size());
        if (put > 0) {
            text.remove_prefix(static_cast<std::size_t>(put));
        } else if (put < 0 && errno == EAGAIN) {
            pollfd waiting{fd, POLLOUT, 0};
            ::poll(&waiting, 1, -1);
        } else if (put < 0 && errno != EINTR) {
            return false;
        }
    }
    return true;
}

}  // namespace isthmus::cli
