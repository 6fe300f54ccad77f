#include "tests/cluster/training_step.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace isthmus::test {
namespace {

constexpr float kRate = 0.05F;

isthmusCallOptions_t optionsOf(const std::string& algorithm) {
    isthmusCallOptions_t options = ISTHMUS_CALL_OPTIONS_INITIALIZER;
    options.algorithm = algorithm.empty() ? nullptr : algorithm.c_str();
    return options;
}

/// A number between -1 and 1 that depends on all of `key`.
float drawn(std::uint64_t key) {
    key = (key + 0x9E3779B97F4A7C15ULL) * 0xBF58476D1CE4E5B9ULL;  // splitmix64's constants
    key = (key ^ (key >> 27U)) * 0x94D049BB133111EBULL;
    return static_cast<float>(static_cast<double>(key >> 40U) / (1 << 23U) - 1.0);
}

/// Of a matrix whose rows lie one after another.
std::size_t placeOf(int row, int column, int columns) {
    const int place = row * columns + column;
    return static_cast<std::size_t>(place);
}

std::vector<float> sample(int number, std::uint64_t kind) {
    std::vector<float> values;
    for (int at = 0; at < kWidth; ++at) {
        values.push_back(drawn((kind << 40U) + placeOf(number, at, kWidth)));
    }
    return values;
}

}  // namespace

void must(isthmusResult_t result, const char* what) {
    if (result == isthmusSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, isthmusGetLastError(nullptr));
    std::exit(1);
}

Group::Group(isthmusComm_t world, const std::vector<int>& members, int color,
             const std::string& algorithm)
    : size_(static_cast<int>(members.size())), algorithm_(algorithm) {
    must(isthmusCommSplit(world, color, 0, &comm_, nullptr), "split");
    must(isthmusCommUserRank(comm_, &rank_), "rank");
    std::vector<int> nodes(members.size());
    must(isthmusCommNodes(comm_, nodes.data()), "nodes");
    const int most = *std::max_element(nodes.begin(), nodes.end());
    // Algorithms of several nodes are refused inside one; two levels, where each node has one rank.
    if (most == 0) algorithm_.clear();
    if (most + 1 == size_ && most > 0) algorithm_ = "ring";
}

Group::Group(Group&& other) noexcept {
    *this = std::move(other);
}

Group& Group::operator=(Group&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(size_, other.size_);
    std::swap(rank_, other.rank_);
    std::swap(algorithm_, other.algorithm_);
    return *this;
}

Group::~Group() {
    if (comm_ != nullptr) must(isthmusCommDestroy(comm_), "destroy");
}

void Group::sum(std::vector<float>& values) const {
    if (size_ == 1) return;
    const isthmusCallOptions_t options = optionsOf(algorithm_);
    must(isthmusAllReduce(values.data(), values.data(), values.size(), isthmusFloat32, isthmusSum,
                          comm_, &options, nullptr),
         "all-reduce");
}

void Group::gather(const std::vector<float>& mine, std::vector<float>& all) const {
    const isthmusCallOptions_t options = optionsOf(algorithm_);
    must(isthmusAllGather(mine.data(), all.data(), mine.size(), isthmusFloat32, comm_, &options,
                          nullptr),
         "all-gather");
}

void Group::sumAndScatter(const std::vector<float>& all, std::vector<float>& mine) const {
    const isthmusCallOptions_t options = optionsOf(algorithm_);
    must(isthmusReduceScatter(all.data(), mine.data(), mine.size(), isthmusFloat32, isthmusSum,
                              comm_, &options, nullptr),
         "reduce-scatter");
}

Trainer::Trainer(Part& part) : part_(part) {
    for (const int layer : layers()) {
        std::vector<float> all;
        // Column c of A^T and of B belong together: a rank of a tensor group has some of them.
        for (int matrix = 0; matrix < 2; ++matrix) {
            for (int inner = 0; inner < innerHere(); ++inner) {
                const int column = part_.tensorRank * innerHere() + inner;
                for (int row = 0; row < kWidth; ++row) {
                    const int place = ((layer * 2 + matrix) * kInner + column) * kWidth + row;
                    all.push_back(0.1F * drawn(static_cast<std::uint64_t>(place)));
                }
            }
        }
        if (part_.zeroStage == 3) {
            const auto shard = static_cast<std::ptrdiff_t>(all.size()) / part_.dataGroup.size();
            const auto begin = all.begin() + shard * part_.dataGroup.rank();
            all = std::vector<float>(begin, begin + shard);
        }
        gradients_.emplace_back(all.size(), 0.0F);
        weights_.push_back(std::move(all));
    }
}

std::vector<int> Trainer::layers() const {
    std::vector<int> here;
    const int count = kLayers / part_.stages;
    for (int at = 0; at < count; ++at) here.push_back(part_.stage * count + at);
    return here;
}

std::vector<float> Trainer::gathered(std::size_t layer) const {
    if (part_.zeroStage != 3) return weights_[layer];
    std::vector<float> all(weights_[layer].size() *
                           static_cast<std::size_t>(part_.dataGroup.size()));
    part_.dataGroup.gather(weights_[layer], all);
    return all;
}

std::vector<float> Trainer::weightsOf(int layer) const {
    return gathered(static_cast<std::size_t>(layer - layers().front()));
}

void Trainer::forward(int micro, Pass& pass) {
    std::vector<float> x;
    if (part_.previous < 0) {
        for (int at = 0; at < kMicroBatch; ++at) {
            const std::vector<float> one = sample(micro * kMicroBatch + at, 1);
            x.insert(x.end(), one.begin(), one.end());
        }
    } else {
        x.resize(kMicroBatch * kWidth);
        must(isthmusRecv(x.data(), x.size(), isthmusFloat32, part_.previous, 1, nullptr,
                         part_.world, nullptr, nullptr),
             "receive");
    }
    const int width = innerHere();
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
        const std::vector<float> weights = gathered(layer);
        const float* const second = weights.data() + width * kWidth;
        std::vector<float> inner(placeOf(kMicroBatch, 0, width), 0.0F);
        std::vector<float> y(x.size(), 0.0F);
        for (int one = 0; one < kMicroBatch; ++one) {
            for (int column = 0; column < width; ++column) {
                float& value = inner[placeOf(one, column, width)];
                for (int row = 0; row < kWidth; ++row) {
                    value += weights[placeOf(column, row, kWidth)] * x[placeOf(one, row, kWidth)];
                }
                for (int row = 0; row < kWidth; ++row) {
                    y[placeOf(one, row, kWidth)] += second[column * kWidth + row] * value;
                }
            }
        }
        part_.tensorGroup.sum(y);
        pass.inputs.push_back(x);
        pass.inner.push_back(std::move(inner));
        for (std::size_t at = 0; at < x.size(); ++at) x[at] += y[at];
    }
    if (part_.next >= 0) {
        must(isthmusSend(x.data(), x.size(), isthmusFloat32, part_.next, 1, part_.world, nullptr,
                         nullptr),
             "send");
    }
    pass.output = std::move(x);
}

void Trainer::backward(int micro, Pass& pass) {
    std::vector<float> slope(pass.output.size());
    if (part_.next < 0) {
        for (int at = 0; at < kMicroBatch; ++at) {
            const std::vector<float> wanted = sample(micro * kMicroBatch + at, 2);
            for (int row = 0; row < kWidth; ++row) {
                const std::size_t place = placeOf(at, row, kWidth);
                slope[place] =
                    (pass.output[place] - wanted[static_cast<std::size_t>(row)]) / kGlobalBatch;
            }
        }
    } else {
        must(isthmusRecv(slope.data(), slope.size(), isthmusFloat32, part_.next, 2, nullptr,
                         part_.world, nullptr, nullptr),
             "receive");
    }
    const int width = innerHere();
    for (std::size_t layer = weights_.size(); layer-- > 0;) {
        const std::vector<float> weights = gathered(layer);
        std::vector<float> gradient(weights.size(), 0.0F);
        std::vector<float> below(slope.size(), 0.0F);
        const std::size_t second = placeOf(width, 0, kWidth);
        for (int one = 0; one < kMicroBatch; ++one) {
            const float* const dy = slope.data() + one * kWidth;
            const float* const x = pass.inputs[layer].data() + one * kWidth;
            for (int column = 0; column < width; ++column) {
                const float inner = pass.inner[layer][placeOf(one, column, width)];
                float back = 0;
                for (int row = 0; row < kWidth; ++row) {
                    const std::size_t place = second + placeOf(column, row, kWidth);
                    back += weights[place] * dy[row];
                    gradient[place] += inner * dy[row];
                }
                for (int row = 0; row < kWidth; ++row) {
                    const std::size_t place = placeOf(column, row, kWidth);
                    gradient[place] += back * x[row];
                    below[placeOf(one, row, kWidth)] += weights[place] * back;
                }
            }
        }
        part_.tensorGroup.sum(below);
        for (std::size_t at = 0; at < slope.size(); ++at) slope[at] += below[at];
        if (part_.zeroStage == 3) {
            std::vector<float> shard(weights_[layer].size());
            part_.dataGroup.sumAndScatter(gradient, shard);
            gradient = std::move(shard);
        }
        for (std::size_t at = 0; at < gradient.size(); ++at) gradients_[layer][at] += gradient[at];
    }
    if (part_.previous >= 0) {
        must(isthmusSend(slope.data(), slope.size(), isthmusFloat32, part_.previous, 2, part_.world,
                         nullptr, nullptr),
             "send");
    }
}

void Trainer::finish() {
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
        std::vector<float>& weights = weights_[layer];
        std::vector<float>& gradient = gradients_[layer];
        if (part_.zeroStage == 0) part_.dataGroup.sum(gradient);
        std::vector<float> shard = gradient;
        std::vector<float> own = weights;
        const bool isSplit = part_.zeroStage == 1 || part_.zeroStage == 2;
        if (isSplit) {
            const std::size_t count =
                weights.size() / static_cast<std::size_t>(part_.dataGroup.size());
            shard.resize(count);
            part_.dataGroup.sumAndScatter(gradient, shard);
            const auto begin =
                weights.begin() + static_cast<std::ptrdiff_t>(count) * part_.dataGroup.rank();
            own = std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count));
        }
        if (part_.zeroStage > 0) part_.replicas.sum(shard);
        for (std::size_t at = 0; at < own.size(); ++at) own[at] -= kRate * shard[at];
        if (isSplit) {
            part_.dataGroup.gather(own, weights);
        } else {
            weights = std::move(own);
        }
        std::fill(gradient.begin(), gradient.end(), 0.0F);
    }
}

void Trainer::step() {
    const int count = kGlobalBatch / kMicroBatch / part_.data;
    std::vector<Pass> passes(static_cast<std::size_t>(count));
    for (int micro = 0; micro < count; ++micro) {
        forward(part_.dataRank * count + micro, passes[static_cast<std::size_t>(micro)]);
    }
    for (int micro = 0; micro < count; ++micro) {
        backward(part_.dataRank * count + micro, passes[static_cast<std::size_t>(micro)]);
    }
    finish();
}

}  // namespace isthmus::test
