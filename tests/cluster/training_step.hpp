#pragma once

#include <isthmus/isthmus.h>

#include <string>
#include <vector>

#include "scheduler/prediction/groups.hpp"

namespace isthmus::test {

/// A group of the world as a step uses it; alone it does nothing. Ends the program on an error.
class Group {
public:
    Group() = default;
    /// `members`: this rank's group. Collective over `world`; `color` tells groups apart.
    Group(isthmusComm_t world, const std::vector<int>& members, int color,
          const std::string& algorithm);
    Group(Group&& other) noexcept;
    Group& operator=(Group&& other) noexcept;
    ~Group();

    int size() const { return size_; }
    int rank() const { return rank_; }
    void sum(std::vector<float>& values) const;
    void gather(const std::vector<float>& mine, std::vector<float>& all) const;
    void sumAndScatter(const std::vector<float>& all, std::vector<float>& mine) const;

private:
    isthmusComm_t comm_ = nullptr;
    int size_ = 1;
    int rank_ = 0;
    std::string algorithm_;
};

/// How a rank takes part; the defaults are one process.
struct Part {
    int tensor = 1;
    int tensorRank = 0;
    int data = 1;
    int dataRank = 0;
    int stages = 1;
    int stage = 0;
    int zeroStage = 0;
    int previous = -1;  ///< rank of the world; -1: there is none
    int next = -1;
    isthmusComm_t world = nullptr;
    Group tensorGroup;
    Group dataGroup;  ///< copies, or those that share a sharded state
    Group replicas;   ///< of one shard
};

// A chain of layers y = x + B A x with squares of differences as loss, small enough for a test.
inline constexpr int kLayers = 4;
inline constexpr int kWidth = 32;
inline constexpr int kInner = 96;  // divided by 2, 3, 4, 6 and 8 ranks
inline constexpr int kGlobalBatch = 24;
inline constexpr int kMicroBatch = 2;

void must(isthmusResult_t result, const char* what);

/// The weights of a stage, trained for some steps of gradient descent.
class Trainer {
public:
    explicit Trainer(Part& part);
    void step();
    /// The weights of a layer of this stage, as one process has them; of the columns that are here.
    std::vector<float> weightsOf(int layer) const;
    std::vector<int> layers() const;

private:
    struct Pass {
        std::vector<std::vector<float>> inputs;  ///< by layer of the stage
        std::vector<std::vector<float>> inner;
        std::vector<float> output;
    };

    int innerHere() const { return kInner / part_.tensor; }
    std::vector<float> gathered(std::size_t layer) const;
    void forward(int micro, Pass& pass);
    void backward(int micro, Pass& pass);
    void finish();

    Part& part_;
    std::vector<std::vector<float>> weights_;    ///< by layer: A by rows, then B by columns
    std::vector<std::vector<float>> gradients_;  ///< of a layer, or of this rank's shard
};

}  // namespace isthmus::test
