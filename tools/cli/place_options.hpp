#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/prediction/model_search.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace isthmus::cli {

/// What says what is to be placed where.
struct PlaceOptions {
    std::string axes;                   ///< tensor=2,data=2,pipe=2; without a number: free
    std::string bytes;                  ///< tensor=3200,data=800: what one rank sends a step
    std::string model;                  ///< file or name, instead of bytes
    std::string job;                    ///< file
    std::string cut;                    ///< one of cutModel's methods; empty: as the objective
    std::string objective;              ///< empty: what the job says
    std::string nodes;                  ///< short form
    std::vector<std::string> topology;  ///< files
    int devices = 1;                    ///< of each node, where they do not say
    std::string rate;
    std::string memory;  ///< of a device, with nodes
    int topK = 1;
    bool mayLeaveSpare = false;
    bool isJson = false;
};

/// What the search is asked, and what the answer speaks of.
struct PlaceQuestion {
    scheduler::Question question;  ///< its volumes are not read where there is a model
    std::optional<scheduler::ModelQuestion> model;
    scheduler::PerAxis<bool> isNamed;
    bool mayLeaveSpare = false;
};

/// Adds them to a subcommand.
void addPlaceOptions(CLI::App& app, PlaceOptions& options);

/// kInvalidArgument or kConfiguration names the option.
Result<scheduler::Cluster> clusterOf(const PlaceOptions& options);
Result<PlaceQuestion> placeQuestionOf(const PlaceOptions& options);

/// "tensor=2,data,pipe=4": 0 is free. kInvalidArgument names what is wrong.
Result<scheduler::PerAxis<std::optional<std::int64_t>>> axisList(const std::string& text,
                                                                 const char* option,
                                                                 bool mayBeFree);

}  // namespace isthmus::cli
