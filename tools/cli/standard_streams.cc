#include "tools/cli/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace isthmus::cli {

void openStandardStreams() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        if (::fcntl(fd, F_GETFD) >= 0) continue;
        (void)::open("/dev/null", O_RDWR);  // takes the lowest free number, which is this one
    }
}

Status flushOutput() {
    const bool hadFailed = std::ferror(stdout) != 0;
    if (std::fflush(stdout) != 0) return outputFailed(errno);
    return hadFailed ? outputFailed(0) : Status();
}

Status outputFailed(int error) {
    std::string text = "cannot write the output";
    if (error != 0) text += std::string(": ") + std::strerror(error);
    return Status::resource(std::move(text));
}

}  // namespace isthmus::cli
