#pragma once

#include <string>

#include "comm/selector/rules.hpp"

namespace isthmus {

/// The rules of a JSON file. Errors: kConfiguration (names the file and what is wrong in it).
Result<AlgorithmRules> readRulesFile(const std::string& path);

}  // namespace isthmus
