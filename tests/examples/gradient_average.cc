// Data-parallel training in miniature: every rank has its own data, all share one linear
// model, and the gradients are averaged over the ranks after each pass.
//
//   c++ -std=c++20 gradient_average.cc $(pkg-config --cflags --libs isthmus) -o gradient_average
//   isthmus run -n 4 ./gradient_average
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <isthmus/communicator.hpp>
#include <random>
#include <vector>

namespace {

constexpr std::size_t kWeights = 16;
constexpr int kSamplesPerRank = 64;
constexpr int kEpochs = 200;
constexpr float kRate = 0.1F;

int giveUp(const isthmus::Status& why) {
    std::fprintf(stderr, "gradient_average: %s\n", why.what().c_str());
    return 1;
}

// What training must find.
float trueWeight(std::size_t index) {
    return static_cast<float>(index) / 8.0F - 1.0F;
}

struct Sample {
    std::vector<float> input;
    float output = 0;
};

std::vector<Sample> samplesOf(isthmus::Rank rank) {
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    std::normal_distribution<float> normal;
    std::vector<Sample> samples(kSamplesPerRank);
    for (Sample& sample : samples) {
        for (std::size_t i = 0; i < kWeights; ++i) {
            sample.input.push_back(normal(random));
            sample.output += trueWeight(i) * sample.input.back();
        }
    }
    return samples;
}

// Adds the gradient of the squared error to `gradient` and returns the mean squared error.
float backward(const std::vector<Sample>& samples, const std::vector<float>& weights,
               isthmus::ArenaVector<float>& gradient) {
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    float loss = 0;
    for (const Sample& sample : samples) {
        float error = -sample.output;
        for (std::size_t i = 0; i < kWeights; ++i) error += weights[i] * sample.input[i];
        loss += error * error / kSamplesPerRank;
        for (std::size_t i = 0; i < kWeights; ++i) {
            gradient[i] += 2 * error * sample.input[i] / kSamplesPerRank;
        }
    }
    return loss;
}

}  // namespace

int main() {
    auto communicator = isthmus::Communicator::fromEnvironment({.name = "training"});
    if (!communicator.ok()) return giveUp(communicator.status());
    const std::vector<Sample> samples = samplesOf(communicator->rank());
    std::vector<float> weights(kWeights);
    isthmus::ArenaVector<float> gradient(kWeights);
    std::vector<float> loss(1);

    for (int epoch = 0; epoch < kEpochs; ++epoch) {
        loss[0] = backward(samples, weights, gradient);
        isthmus::Work averaging =
            communicator->allReduce(gradient, isthmus::ReduceOp::kAvg, {.name = "gradient"});
        isthmus::Work reporting =
            communicator->allReduce(loss, isthmus::ReduceOp::kAvg, {.priority = 7});
        if (auto status = averaging.wait(); !status.ok()) return giveUp(status);
        for (std::size_t i = 0; i < kWeights; ++i) weights[i] -= kRate * gradient[i];
        if (auto status = reporting.wait(); !status.ok()) return giveUp(status);
        if (communicator->rank() == 0 && epoch % 50 == 0) {
            std::printf("epoch %d loss %.6f\n", epoch, static_cast<double>(loss[0]));
        }
    }

    // All ranks took the same steps, so not one bit may differ; and they found the line.
    std::vector<float> all(kWeights * static_cast<std::size_t>(communicator->ranks()));
    if (auto status = communicator->blocking().allGather(weights, all); !status.ok()) {
        return giveUp(status);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t index = i % kWeights;
        if (all[i] != weights[index] || std::fabs(all[i] - trueWeight(index)) > 1e-3F) {
            std::fprintf(stderr, "weight %zu of rank %zu is %.6f\n", index, i / kWeights,
                         static_cast<double>(all[i]));
            return 1;
        }
    }
    if (communicator->rank() == 0) {
        std::printf("%d ranks agree on all weights; final loss %.6f\n", communicator->ranks(),
                    static_cast<double>(loss[0]));
    }
    if (auto status = communicator->close(); !status.ok()) return giveUp(status);
    return 0;
}
