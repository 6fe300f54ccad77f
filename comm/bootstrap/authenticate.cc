#include "comm/bootstrap/authenticate.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "comm/base/assert.hpp"
#include "comm/base/descriptors.hpp"

namespace isthmus {

namespace {

/// Fetched once: a fetch takes locks and walks the providers (EVP_MAC(3)). Never freed, so that
/// threads that outlive main may still use it.
EVP_MAC* hmac() {
    static EVP_MAC* const fetched = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
    ISTHMUS_ASSERT(fetched != nullptr);
    return fetched;
}

/// Keeps threads that outlive main() out of OpenSSL once exit() takes it down (OPENSSL_cleanup(3),
/// which OpenSSL registers with atexit): they stay where they are until the process is gone.
class UntilExit {
public:
    /// To be called after OpenSSL's first use: what was registered last runs first.
    static void arm() {
        static const int armed = std::atexit([] {
            isEnding().store(true);
            runsExit = true;
            // Bounded, because a forked child may have a copy of a lock whose holder it lacks.
            (void)useOfOpenSsl().try_lock_for(std::chrono::seconds(1));
        });
        ISTHMUS_ASSERT(armed == 0);
    }

    UntilExit() {
        // The thread that runs exit() may go on: handlers registered earlier may need it.
        if (runsExit) return;
        while (isEnding().load()) ::pause();
        lock_.lock();
    }

private:
    // Both outlive every thread.
    static std::shared_timed_mutex& useOfOpenSsl() {
        static auto* const mutex = new std::shared_timed_mutex;
        return *mutex;
    }
    static std::atomic<bool>& isEnding() {
        static std::atomic<bool> ending{false};
        return ending;
    }

    static inline thread_local bool runsExit = false;
    std::shared_lock<std::shared_timed_mutex> lock_{useOfOpenSsl(), std::defer_lock};
};

using MacContext = std::unique_ptr<EVP_MAC_CTX, void (*)(EVP_MAC_CTX*)>;

bool canMakeMacs() {
    EVP_MAC* const fetched = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
    if (fetched == nullptr) return false;
    char digestName[] = "SHA256";
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digestName, 0),
        OSSL_PARAM_construct_end(),
    };
    const unsigned char key[32] = {};
    const MacContext context(EVP_MAC_CTX_new(fetched), EVP_MAC_CTX_free);
    EVP_MAC_free(fetched);
    return context != nullptr && EVP_MAC_init(context.get(), key, sizeof key, parameters) == 1;
}

}  // namespace

Status prepareAuthentication() {
    static std::atomic<bool> isReady{false};
    if (isReady.load(std::memory_order_acquire)) return {};
    errno = 0;
    unsigned char random = 0;
    if (!canMakeMacs() || RAND_bytes(&random, 1) != 1) {
        return Status::resource("OpenSSL cannot be used" +
                                (errno == 0 ? std::string() : ": " + causeOf(errno)));
    }
    UntilExit::arm();
    isReady.store(true, std::memory_order_release);
    return {};
}

Mac hmacSha256(const JobKey& key, std::initializer_list<std::span<const std::byte>> parts) {
    const UntilExit use;
    char digestName[] = "SHA256";
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digestName, 0),
        OSSL_PARAM_construct_end(),
    };
    const MacContext context(EVP_MAC_CTX_new(hmac()), EVP_MAC_CTX_free);
    // After prepareAuthentication() these fail without memory only: that ends the process.
    ISTHMUS_ASSERT(context != nullptr);
    ISTHMUS_ASSERT(EVP_MAC_init(context.get(),
                                reinterpret_cast<const unsigned char*>(key.bytes.data()),
                                key.bytes.size(), parameters) == 1);
    for (const auto part : parts) {
        ISTHMUS_ASSERT(EVP_MAC_update(context.get(),
                                      reinterpret_cast<const unsigned char*>(part.data()),
                                      part.size()) == 1);
    }
    Mac mac{};
    std::size_t written = 0;
    ISTHMUS_ASSERT(EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(mac.data()),
                                 &written, mac.size()) == 1);
    ISTHMUS_ASSERT(written == mac.size());
    return mac;
}

bool isEqualInConstantTime(std::span<const std::byte> one, std::span<const std::byte> other) {
    return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

Nonce makeNonce() {
    const UntilExit use;
    Nonce nonce{};
    ISTHMUS_ASSERT(RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()),
                              static_cast<int>(nonce.size())) == 1);
    return nonce;
}

Mac proofOf(const JobKey& key, std::string_view label, std::span<const std::byte> transcript) {
    const auto labelBytes = static_cast<std::uint32_t>(label.size());
    return hmacSha256(key, {std::as_bytes(std::span(&labelBytes, 1)),
                            std::as_bytes(std::span(label.data(), label.size())), transcript});
}

}  // namespace isthmus
