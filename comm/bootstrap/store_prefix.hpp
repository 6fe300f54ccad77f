#pragma once

#include <string>

#include <isthmus/store.hpp>

namespace isthmus {

/// A part of another Store, which must outlive it: every key gets `prefix/` in front.
class PrefixStore final : public Store {
public:
    PrefixStore(Store& inner, std::string_view prefix) : inner_(inner), prefix_(prefix) {
        prefix_ += '/';
    }

    Status set(std::string_view key, const Bytes& value) override {
        return inner_.set(prefix_ + std::string(key), value);
    }
    Result<Bytes> get(std::string_view key, std::chrono::milliseconds limit) override {
        return inner_.get(prefix_ + std::string(key), limit);
    }
    Result<bool> has(std::string_view key) override {
        return inner_.has(prefix_ + std::string(key));
    }
    Status erase(std::string_view key) override { return inner_.erase(prefix_ + std::string(key)); }

private:
    Store& inner_;
    std::string prefix_;
};

}  // namespace isthmus
