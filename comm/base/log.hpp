#pragma once

#include <string_view>

namespace isthmus {

enum class LogLevel : int { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

/// Writes one whole line "isthmus LEVEL rank R pid P: text" to standard error, never to standard
/// output. Any thread. Lines of one process are never torn.
void log(LogLevel level, std::string_view text);

/// Set once from the options (ISTHMUS_LOG) and when the rank is known (-1: not shown).
void setLogLevel(LogLevel level);
void setLogRank(int rank);
bool isLogged(LogLevel level);

}  // namespace isthmus
