#pragma once

#include <memory>
#include <string>

#include <isthmus/store.hpp>

namespace isthmus {

/// A Store in a folder that all ranks see: one machine, or a network file system. A value appears
/// whole or not at all. The caller removes the folder.
class FileStore final : public Store {
public:
    /// Makes the folder with mode 0700 where it is missing. kConfiguration when it belongs to
    /// another user or others may write to it.
    static Result<std::unique_ptr<FileStore>> open(const std::string& folder);

    Status set(std::string_view key, const Bytes& value) override;
    Result<Bytes> get(std::string_view key, std::chrono::milliseconds limit) override;
    Result<bool> has(std::string_view key) override;
    Status erase(std::string_view key) override;

private:
    explicit FileStore(std::string folder) : folder_(std::move(folder)) {}
    std::string pathOf(std::string_view key) const;

    std::string folder_;
};

}  // namespace isthmus
