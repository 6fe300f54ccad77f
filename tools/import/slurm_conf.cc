// Slurm's topology.conf (topology.conf(5)): SwitchName=, BlockName=, one group a line.
#include <algorithm>
#include <sstream>

#include "tools/import/formats.hpp"

namespace isthmus::foreign {
namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return text;
}

/// Words of a line that are not inside brackets: "Nodes=a[1,2] LinkSpeed=10".
std::vector<std::string> wordsOf(const std::string& line) {
    std::istringstream stream(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

Status readWord(const std::string& word, SlurmGroup& group) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) return Status::configuration("\"" + word + "\" is no key=value");
    const std::string key = lower(word.substr(0, equals));
    const std::string value = word.substr(equals + 1);
    if (key == "switchname" || key == "blockname") {
        group.name = value;
        return value.empty() ? Status::configuration("a group has no name") : Status();
    }
    if (key == "linkspeed" || key == "blocksizes") return {};  // Slurm says: not used, or no group
    if (key != "nodes" && key != "switches") {
        return Status::configuration(
            "unknown key \"" + word.substr(0, equals) +
            "\"; known: SwitchName, BlockName, Nodes, Switches, LinkSpeed, "
            "BlockSizes");
    }
    Result<std::vector<std::string>> names = hostsOf(value);
    if (!names.ok()) return names.status();
    (key == "nodes" ? group.nodes : group.groups) = std::move(*names);
    return {};
}

}  // namespace

Result<scheduler::Cluster> fromSlurmConf(const std::string& text, const Defaults& defaults) {
    std::istringstream stream(text);
    std::vector<SlurmGroup> groups;
    std::string whole;
    int number = 0;
    int first = 1;
    for (std::string line; std::getline(stream, line);) {
        ++number;
        if (whole.empty()) first = number;
        if (!line.empty() && line.back() == '\r') line.pop_back();
        const bool goesOn = !line.empty() && line.back() == '\\';
        if (goesOn) line.pop_back();
        whole += line;
        if (goesOn) continue;
        SlurmGroup group;
        group.where = "line " + std::to_string(first);
        for (const std::string& word : wordsOf(whole)) {
            ISTHMUS_TRY(readWord(word, group).within(group.where));
        }
        whole.clear();
        if (!group.name.empty()) {
            groups.push_back(std::move(group));
        } else if (!group.nodes.empty() || !group.groups.empty()) {
            return Status::configuration(group.where + ": a group has no name");
        }
    }
    return clusterOfGroups(groups, defaults.devices);
}

}  // namespace isthmus::foreign
