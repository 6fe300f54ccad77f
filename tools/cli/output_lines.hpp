#pragma once

#include <string>
#include <string_view>

namespace isthmus::cli {

/// Makes whole lines of what one stream of one rank writes, however it is cut on the way.
class OutputLines {
public:
    explicit OutputLines(std::string prefix) : prefix_(std::move(prefix)) {}

    /// The lines that are complete now, each with the prefix and an end of line. A carriage return
    /// ends a line too: progress bars show.
    std::string add(std::string_view piece);

    /// What is left at the end of the stream, as a line; empty when nothing is.
    std::string finish();

private:
    void append(std::string& lines, std::string_view line) const;

    const std::string prefix_;
    std::string open_;  ///< a line that has not ended
};

/// Writes all of `text`. False, with errno, when it takes no more: EPIPE when nobody reads
/// there.
bool writeWhole(int fd, std::string_view text);

}  // namespace isthmus::cli
