#include "comm/bootstrap/job_key.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "comm/base/unique_fd.hpp"
#include "comm/bootstrap/authenticate.hpp"

namespace isthmus {

namespace {

/// 64 digits and a few line ends are all that a key's text may have.
constexpr std::size_t kMostText = 80;

int digitOf(char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
    return -1;
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const auto first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// Reads to the end from offset 0; a pipe, which has no offset, from where it stands.
Result<JobKey> readKey(int fd, const std::string& where) {
    char text[kMostText + 1];
    std::size_t filled = 0;
    bool isPipe = false;
    while (filled < sizeof text) {
        const auto room = sizeof text - filled;
        const ssize_t got = isPipe ? ::read(fd, text + filled, room)
                                   : ::pread(fd, text + filled, room, static_cast<off_t>(filled));
        if (got < 0 && errno == ESPIPE && !isPipe) {
            isPipe = true;
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            return Status::configuration("cannot read the job key from " + where + ": " +
                                         std::strerror(errno));
        }
        if (got == 0) break;
        filled += static_cast<std::size_t>(got);
    }
    if (filled == JobKey::kBytes) {
        JobKey key;
        std::memcpy(key.bytes.data(), text, filled);
        OPENSSL_cleanse(text, sizeof text);
        return key;
    }
    const auto key = JobKey::fromHex({text, filled});
    OPENSSL_cleanse(text, sizeof text);
    return key.ok() ? key : Result<JobKey>(key.status().within(where));
}

}  // namespace

Result<JobKey> JobKey::random() {
    JobKey key;
    if (RAND_bytes(reinterpret_cast<unsigned char*>(key.bytes.data()), kBytes) != 1) {
        return Status::internal("there is no random source to make a job key from");
    }
    return key;
}

Result<JobKey> JobKey::fromHex(std::string_view text) {
    const auto digits = trimmed(text);
    const auto wrong = [] {
        return Status::configuration("a job key has 32 bytes or 64 hexadecimal digits");
    };
    if (digits.size() != 2 * kBytes) return wrong();
    JobKey key;
    for (std::size_t i = 0; i < kBytes; ++i) {
        const int high = digitOf(digits[2 * i]);
        const int low = digitOf(digits[2 * i + 1]);
        if (high < 0 || low < 0) return wrong();
        key.bytes[i] = static_cast<std::byte>(high * 16 + low);
    }
    return key;
}

JobKey JobKey::derivedFrom(std::string_view secret) {
    constexpr std::string_view kLabel = "isthmus job key 1";
    JobKey label;
    std::memcpy(label.bytes.data(), kLabel.data(), kLabel.size());
    JobKey key;
    key.bytes = hmacSha256(label, {std::as_bytes(std::span(secret.data(), secret.size()))});
    return key;
}

Result<JobKey> JobKey::fromDescriptor(int fd) {
    return readKey(fd, "descriptor " + std::to_string(fd));
}

Result<JobKey> JobKey::fromFile(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file.isOpen()) {
        return Status::configuration("cannot open the job key file " + path + ": " +
                                     std::strerror(errno));
    }
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return Status::configuration("the job key file " + path + " is not a plain file");
    }
    if (facts.st_uid != ::geteuid()) {
        return Status::configuration("the job key file " + path + " belongs to user " +
                                     std::to_string(facts.st_uid) + ", not to user " +
                                     std::to_string(::geteuid()));
    }
    if ((facts.st_mode & 077) != 0) {
        return Status::configuration("the job key file " + path +
                                     " can be used by others, expected mode 0600");
    }
    return readKey(file.get(), path);
}

Result<int> JobKey::toInheritableDescriptor() const {
    UniqueFd memory(::memfd_create("isthmus-job-key", MFD_ALLOW_SEALING));
    if (!memory.isOpen()) {
        return Status::resource(std::string("cannot make a descriptor for the job key: ") +
                                std::strerror(errno));
    }
    const ssize_t put = ::pwrite(memory.get(), bytes.data(), kBytes, 0);
    constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
    if (put != static_cast<ssize_t>(kBytes) || ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
        return Status::resource(std::string("cannot fill the job key's descriptor: ") +
                                std::strerror(errno));
    }
    return memory.release();
}

std::string JobKey::hex() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const std::byte value : bytes) {
        text += kDigits[std::to_integer<unsigned>(value) >> 4];
        text += kDigits[std::to_integer<unsigned>(value) & 15];
    }
    return text;
}

bool JobKey::operator==(const JobKey& other) const {
    return CRYPTO_memcmp(bytes.data(), other.bytes.data(), kBytes) == 0;
}

Result<std::optional<JobKey>> readJobKey(std::string_view descriptor, const std::string& file) {
    Result<JobKey> key = JobKey{};
    if (!descriptor.empty()) {
        int fd = -1;
        const auto* last = descriptor.data() + descriptor.size();
        const auto [end, error] = std::from_chars(descriptor.data(), last, fd);
        if (error != std::errc() || end != last || fd < 0) {
            return Status::configuration("ISTHMUS_JOB_KEY_FD says \"" + std::string(descriptor) +
                                         "\", expected the number of a descriptor");
        }
        key = JobKey::fromDescriptor(fd);
        if (!key.ok()) return key.status().within("ISTHMUS_JOB_KEY_FD");
    } else if (!file.empty()) {
        key = JobKey::fromFile(file);
        if (!key.ok()) return key.status().within("ISTHMUS_JOB_KEY_FILE");
    } else {
        return std::optional<JobKey>();
    }
    return std::optional<JobKey>(*key);
}

}  // namespace isthmus
