#include "comm/bootstrap/store_file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "comm/base/bytes.hpp"
#include "comm/base/unique_fd.hpp"
#include "comm/bootstrap/job_key.hpp"
#include "comm/bootstrap/socket.hpp"
#include "comm/bootstrap/store_memory.hpp"
#include "comm/bootstrap/store_wire.hpp"

namespace isthmus {

namespace {

using std::chrono::milliseconds;

/// A look costs one system call; twenty a second are no load even on a network file system.
constexpr milliseconds kFirstPause{1};
constexpr milliseconds kLastPause{50};

Status broken(std::string_view doing, const std::string& path, int error) {
    std::string what(doing);
    what.append(" ").append(path).append(": ").append(std::strerror(error));
    return error == ENOSPC || error == EDQUOT ? Status::resource(std::move(what))
                                              : Status::configuration(std::move(what));
}

Status writeWhole(const std::string& path, const Bytes& value) {
    UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.isOpen()) return broken("cannot write", path, errno);
    std::size_t written = 0;
    while (written < value.size()) {
        const ssize_t put = ::write(file.get(), value.data() + written, value.size() - written);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return broken("cannot write", path, errno);
        written += static_cast<std::size_t>(put);
    }
    return {};
}

/// Nothing when the file is not there.
Result<std::optional<Bytes>> readWhole(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    // ESTALE: a network file system lost it between look-up and open.
    if (!file.isOpen() && (errno == ENOENT || errno == ESTALE)) return std::optional<Bytes>();
    struct stat facts {};
    if (!file.isOpen() || ::fstat(file.get(), &facts) != 0) {
        return broken("cannot read", path, errno);
    }
    if (!S_ISREG(facts.st_mode) || facts.st_size > static_cast<off_t>(kMostValueBytes)) {
        return Status::mismatch(path + " is no value of a store");
    }
    Bytes value(static_cast<std::size_t>(facts.st_size));
    std::size_t filled = 0;
    while (filled < value.size()) {
        const ssize_t got = ::read(file.get(), value.data() + filled, value.size() - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return broken("cannot read", path, got == 0 ? EIO : errno);
        filled += static_cast<std::size_t>(got);
    }
    return std::optional<Bytes>(std::move(value));
}

/// Gives `from` the name `to` unless that exists: 0 or the error.
int publish(const std::string& from, const std::string& to) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
    if (errno == EEXIST) return EEXIST;
    // NFS has no RENAME_NOREPLACE (rename(2)); a hard link fails in the same way when `to` exists.
    const int error = ::link(from.c_str(), to.c_str()) == 0 ? 0 : errno;
    ::unlink(from.c_str());
    return error;
}

}  // namespace

Result<std::unique_ptr<FileStore>> FileStore::open(const std::string& folder) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
        return broken("cannot make the store's folder", folder, errno);
    }
    struct stat facts {};
    if (::lstat(folder.c_str(), &facts) != 0) return broken("cannot use", folder, errno);
    if (!S_ISDIR(facts.st_mode)) {
        return Status::configuration("the store's folder " + folder + " is not a folder");
    }
    if (facts.st_uid != ::geteuid() || (facts.st_mode & 022) != 0) {
        return Status::configuration("the store's folder " + folder +
                                     " can be written by others, expected one of our own");
    }
    return std::unique_ptr<FileStore>(new FileStore(folder));
}

/// Plain keys stay readable; others, and long ones, are named by a digest that nobody can force to
/// meet another.
std::string FileStore::pathOf(std::string_view key) const {
    constexpr std::size_t kMostName = 200;  // NAME_MAX is 255; a temporary name is longer
    const bool isPlain =
        key.size() <= kMostName && std::all_of(key.begin(), key.end(), [](char letter) {
            return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                   letter == '_' || letter == '-';
        });
    return folder_ + (isPlain ? "/k." + std::string(key) : "/d." + JobKey::derivedFrom(key).hex());
}

Status FileStore::set(std::string_view key, const Bytes& value) {
    ISTHMUS_TRY(checkStoreKey(key));
    ISTHMUS_TRY(checkStoreValue(value));
    const std::string path = pathOf(key);
    // Two that hold the same random name would fail on O_EXCL, not overwrite each other.
    const std::string unfinished = folder_ + "/t." + (*JobKey::random()).hex().substr(0, 32);
    if (const Status written = writeWhole(unfinished, value); !written.ok()) {
        ::unlink(unfinished.c_str());
        return written;
    }
    const int error = publish(unfinished, path);
    if (error == 0) return {};
    ::unlink(unfinished.c_str());
    if (error != EEXIST) return broken("cannot write", path, error);
    const auto held = readWhole(path);
    if (!held.ok()) return held.status();
    return held->has_value() && **held == value ? Status() : heldByOthers(key);
}

Result<Bytes> FileStore::get(std::string_view key, milliseconds limit) {
    ISTHMUS_TRY(checkStoreKey(key));
    const std::string path = pathOf(key);
    const auto deadline = deadlineIn(limit);
    milliseconds pause = kFirstPause;
    for (;;) {
        auto value = readWhole(path);
        if (!value.ok()) return value.status();
        if (value->has_value()) return std::move(**value);
        if (timeLeft(deadline).count() == 0) return nobodyWrote(key, limit);
        std::this_thread::sleep_for(std::min(pause, timeLeft(deadline)));
        pause = std::min(pause * 2, kLastPause);
    }
}

Result<bool> FileStore::has(std::string_view key) {
    ISTHMUS_TRY(checkStoreKey(key));
    const std::string path = pathOf(key);
    if (::access(path.c_str(), F_OK) == 0) return true;
    if (errno == ENOENT || errno == ESTALE) return false;
    return broken("cannot read", path, errno);
}

Status FileStore::erase(std::string_view key) {
    ISTHMUS_TRY(checkStoreKey(key));
    const std::string path = pathOf(key);
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
    return broken("cannot erase", path, errno);
}

}  // namespace isthmus
