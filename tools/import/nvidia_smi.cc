// What `nvidia-smi topo -m` prints: a matrix of GPUs and cards, then legends.
#include <algorithm>
#include <sstream>

#include "tools/import/formats.hpp"

namespace isthmus::foreign {
namespace {

// NVLink 2 to 4 carry 25 GB/s each way a link (NVIDIA V100, A100 and H100 datasheets: 300, 600 and
// 900 GB/s both ways over 6, 12 and 18 links).
constexpr double kLinkBitsPerSecond = 25 * 8e9;

/// Without the escapes that underline the header.
std::string plain(const std::string& line) {
    std::string text;
    for (std::size_t at = 0; at < line.size(); ++at) {
        if (line[at] == '\x1b') {
            while (at < line.size() && line[at] != 'm') ++at;
        } else if (line[at] != '\r') {
            text += line[at];
        }
    }
    return text;
}

std::vector<std::string> wordsOf(const std::string& line) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

bool isDevice(const std::string& word) {
    return word.rfind("GPU", 0) == 0 && word.size() > 3 &&
           std::all_of(word.begin() + 3, word.end(),
                       [](unsigned char c) { return std::isdigit(c); });
}

/// Links between two devices: "NV12" has 12, "SYS" none. -1: no such word is known.
int linksOf(const std::string& word) {
    for (const char* path : {"X", "SYS", "NODE", "PHB", "PXB", "PIX"}) {
        if (word == path) return 0;
    }
    if (word.rfind("NV", 0) != 0 || word.size() < 3 || word.size() > 5) return -1;
    int links = 0;
    for (std::size_t at = 2; at < word.size(); ++at) {
        if (word[at] < '0' || word[at] > '9') return -1;
        links = 10 * links + (word[at] - '0');
    }
    return links;
}

class Matrix {
public:
    Status readHeader(const std::string& line) {
        for (const std::string& word : wordsOf(line)) {
            if (word == "CPU" || word == "NUMA" || word == "GPU") break;  // affinities
            columns_.push_back(word);
        }
        devices_ =
            static_cast<std::size_t>(std::count_if(columns_.begin(), columns_.end(), isDevice));
        return {};
    }

    Status readRow(const std::string& line, int number) {
        const std::vector<std::string> words = wordsOf(line);
        const std::string where = "line " + std::to_string(number) + ": ";
        const auto column = std::find(columns_.begin(), columns_.end(), words.front());
        if (column == columns_.end()) return {};
        if (words.size() < columns_.size() + 1) {
            return Status::configuration(where + "has " + std::to_string(words.size() - 1) +
                                         " paths, the header " + std::to_string(columns_.size()));
        }
        for (std::size_t at = 0; at < columns_.size(); ++at) {
            const int links = linksOf(words[at + 1]);
            if (links < 0) {
                return Status::configuration(where + "\"" + words[at + 1] +
                                             "\" is no path that is known");
            }
            const bool isPair = isDevice(words.front()) && isDevice(columns_[at]);
            if (isPair && words.front() != columns_[at]) fewest_ = std::min(fewest_, links);
        }
        rows_ += isDevice(words.front()) ? 1 : 0;
        return {};
    }

    /// "NIC0: mlx5_0": what a column stands for.
    void readLegend(const std::vector<std::string>& words) {
        if (words.size() != 2 || words[0].empty() || words[0].back() != ':') return;
        const std::string name = words[0].substr(0, words[0].size() - 1);
        std::replace(columns_.begin(), columns_.end(), name, words[1]);
    }

    Result<scheduler::Cluster> cluster(const std::string& name) const {
        if (rows_ != devices_) {
            return Status::configuration("the matrix has " + std::to_string(rows_) + " of " +
                                         std::to_string(devices_) + " GPUs");
        }
        scheduler::Node node;
        node.name = name;
        for (const std::string& column : columns_) {
            if (isDevice(column)) {
                node.devices.push_back({.index = node.size()});
            } else {
                const auto number = static_cast<int>(node.cards.size());
                node.cards.push_back({.name = column, .rail = number});
            }
        }
        const int links = devices_ > 1 && fewest_ != kNone ? fewest_ : 0;
        return clusterOfNode(std::move(node), links * kLinkBitsPerSecond);
    }

    bool hasHeader() const { return !columns_.empty(); }

private:
    static constexpr int kNone = 1 << 20;
    std::vector<std::string> columns_;
    std::size_t devices_ = 0;
    std::size_t rows_ = 0;
    int fewest_ = kNone;
};

}  // namespace

Result<scheduler::Cluster> fromNvidiaSmi(const std::string& text, const Defaults& defaults) {
    std::istringstream stream(text);
    Matrix matrix;
    int number = 0;
    for (std::string raw; std::getline(stream, raw);) {
        ++number;
        const std::string line = plain(raw);
        const std::vector<std::string> words = wordsOf(line);
        if (words.empty()) continue;
        if (!matrix.hasHeader()) {
            if (isDevice(words.front())) ISTHMUS_TRY(matrix.readHeader(line));
            continue;
        }
        matrix.readLegend(words);
        ISTHMUS_TRY(matrix.readRow(line, number));
    }
    if (!matrix.hasHeader()) return Status::configuration("has no line of GPU0, GPU1, ...");
    return matrix.cluster(defaults.name);
}

}  // namespace isthmus::foreign
