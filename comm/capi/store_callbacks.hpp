#pragma once

#include <isthmus/isthmus.h>

#include <string>

#include <isthmus/store.hpp>

namespace isthmus {

/// A Store of the caller's, behind the functions that it gave.
class CallbackStore final : public Store {
public:
    CallbackStore(const isthmusStoreCallbacks_t& functions, void* context);
    ~CallbackStore() override;
    CallbackStore(const CallbackStore&) = delete;
    CallbackStore& operator=(const CallbackStore&) = delete;

    Status set(std::string_view key, const Bytes& value) override;
    Result<Bytes> get(std::string_view key, std::chrono::milliseconds limit) override;
    Result<bool> has(std::string_view key) override;
    Status erase(std::string_view key) override;

private:
    Status failed(const char* what, std::string_view key, int code) const;

    isthmusStoreCallbacks_t functions_{};
    void* context_;
};

/// Our address on the way to the job's master, where the environment names one; else empty.
std::string towardsMaster();

}  // namespace isthmus
