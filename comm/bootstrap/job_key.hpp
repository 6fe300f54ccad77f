#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <isthmus/status.hpp>

namespace isthmus {

/// The secret that the processes of one job share. The launcher makes it; it never stands on a
/// command line and is never printed or logged.
struct JobKey {
    static constexpr std::size_t kBytes = 32;

    std::array<std::byte, kBytes> bytes{};

    /// From the operating system's random source, through OpenSSL. kInternal when there is none.
    static Result<JobKey> random();

    /// 64 hexadecimal digits, white space around them ignored.
    static Result<JobKey> fromHex(std::string_view text);

    /// A key that any process that knows `secret` makes alike (SHA-256 under a label). As secret
    /// as `secret` is.
    static JobKey derivedFrom(std::string_view secret);

    /// Reads an inherited descriptor (ISTHMUS_JOB_KEY_FD) from offset 0 without closing it, so that
    /// programs that this one starts can read it too. Holds 32 raw bytes or 64 hexadecimal digits.
    static Result<JobKey> fromDescriptor(int fd);

    /// Reads a file (ISTHMUS_JOB_KEY_FILE) that must be a plain file of our user with no
    /// permission for group or others, else kConfiguration.
    static Result<JobKey> fromFile(const std::string& path);

    /// Hands the key to programs that this process starts: a sealed memfd that survives exec.
    Result<int> toInheritableDescriptor() const;

    /// Exactly kBytes raw bytes; nothing otherwise.
    static std::optional<JobKey> fromBytes(std::span<const std::byte> data) {
        if (data.size() != kBytes) return std::nullopt;
        JobKey key;
        std::copy(data.begin(), data.end(), key.bytes.begin());
        return key;
    }

    std::string hex() const;
    std::span<const std::byte> span() const { return bytes; }

    /// Takes the same time whatever the keys are.
    bool operator==(const JobKey& other) const;
};

/// The key that `descriptor` (text of ISTHMUS_JOB_KEY_FD) or `file` (of ISTHMUS_JOB_KEY_FILE)
/// names; nothing when both are empty. The descriptor wins.
Result<std::optional<JobKey>> readJobKey(std::string_view descriptor, const std::string& file);

}  // namespace isthmus
