// Data-parallel SGD without a framework: gradients get ready in another order on every rank, and a
// FusingReducer averages them behind the program's back. Rank 0 compares the weights at the end
// with those of the same training in one process.
//
//   isthmus run -n 4 build/sgd
//   isthmus run -n 4 build/sgd --uneven                # the last rank has a batch less, and joins
//   isthmus run -n 4 build/sgd --fault=name            # or twice, size: what mistakes look like
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "fusing_reducer.hpp"

namespace {

constexpr std::size_t kSizes[] = {1, 7, 64, 1000, 30000, 300000};  // the last exceeds one fusion
constexpr std::size_t kTensors = std::size(kSizes);
constexpr int kSteps = 10;
constexpr int kSamples = 2;  // of one batch

using Model = std::vector<std::vector<float>>;

struct Settings {
    bool isUneven = false;
    std::string fault;
    FusingReducer::Limits limits;
};

/// The mistakes that --fault asks for are made here.
bool isFaulty(int rank, int step, std::size_t tensor) {
    return rank == 1 && step == 2 && tensor == 3;
}

std::string nameOf(const Settings& settings, int rank, int step, std::size_t tensor) {
    if (settings.fault == "name" && isFaulty(rank, step, tensor)) return "another.gradient";
    return "tensor" + std::to_string(tensor) + ".gradient";
}

Model makeModel(unsigned seed) {
    std::mt19937 random(seed);
    Model model;
    for (const std::size_t size : kSizes) {
        model.emplace_back(size);
        for (float& weight : model.back()) weight = static_cast<float>(random() % 1000) / 1000;
    }
    return model;
}

// Each tensor is a linear regression of its own, on samples that only (rank, step, tensor) decide.
std::vector<float> gradientOf(const std::vector<float>& weights, int rank, int step,
                              std::size_t tensor) {
    std::mt19937 random(static_cast<unsigned>((rank * 1000 + step) * 10) +
                        static_cast<unsigned>(tensor));
    std::vector<float> gradient(weights.size());
    std::vector<float> input(weights.size());
    for (int sample = 0; sample < kSamples; ++sample) {
        double error = -1;
        for (std::size_t i = 0; i < input.size(); ++i) {
            input[i] = static_cast<float>(random() % 2000) / 1000 - 1;
            error += static_cast<double>(input[i]) * static_cast<double>(weights[i]);
        }
        const auto factor = static_cast<float>(2 * error / kSamples);
        for (std::size_t i = 0; i < input.size(); ++i) gradient[i] += factor * input[i];
    }
    return gradient;
}

void descend(std::vector<float>& weights, const std::vector<float>& gradient) {
    const float rate = 0.5F / static_cast<float>(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * gradient[i];
}

int stepsOf(int rank, int ranks, bool isUneven) {
    return isUneven && rank == ranks - 1 ? kSteps - 1 : kSteps;
}

/// The same training without anybody else.
Model trainAlone(int ranks, bool isUneven) {
    Model model = makeModel(1);
    for (int step = 0; step < kSteps; ++step) {
        for (std::size_t tensor = 0; tensor < kTensors; ++tensor) {
            std::vector<double> sum(kSizes[tensor]);
            int givers = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                if (step >= stepsOf(rank, ranks, isUneven)) continue;
                ++givers;
                const auto gradient = gradientOf(model[tensor], rank, step, tensor);
                for (std::size_t i = 0; i < sum.size(); ++i)
                    sum[i] += static_cast<double>(gradient[i]);
            }
            std::vector<float> average(sum.size());
            for (std::size_t i = 0; i < sum.size(); ++i)
                average[i] = static_cast<float>(sum[i] / givers);
            descend(model[tensor], average);
        }
    }
    return model;
}

isthmus::Status submitAll(FusingReducer& reducer, Model& gradients, int rank, int step,
                          const Settings& settings) {
    std::vector<std::size_t> order(kTensors);
    for (std::size_t i = 0; i < kTensors; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(),
                 std::mt19937(static_cast<unsigned>(rank * kSteps + step)));
    for (const std::size_t tensor : order) {
        const std::string name = nameOf(settings, rank, step, tensor);
        std::span<float> gradient = gradients[tensor];
        const bool isWrong = isFaulty(rank, step, tensor);
        if (isWrong && settings.fault == "size") gradient = gradient.first(999);
        if (auto status = reducer.submit(name, gradient); !status.ok()) return status;
        if (isWrong && settings.fault == "twice") {
            if (auto status = reducer.submit(name, gradient); !status.ok()) return status;
        }
    }
    return {};
}

isthmus::Status train(FusingReducer& reducer, Model& model, int rank, int ranks,
                      const Settings& settings) {
    for (int step = 0; step < stepsOf(rank, ranks, settings.isUneven); ++step) {
        Model gradients;
        for (std::size_t tensor = 0; tensor < kTensors; ++tensor)
            gradients.push_back(gradientOf(model[tensor], rank, step, tensor));
        if (auto status = submitAll(reducer, gradients, rank, step, settings); !status.ok())
            return status;
        for (std::size_t tensor = 0; tensor < kTensors; ++tensor) {
            const std::string name = nameOf(settings, rank, step, tensor);
            if (auto status = reducer.wait(name); !status.ok()) return status;
            descend(model[tensor], gradients[tensor]);
        }
        if (rank == 0) std::printf("step %d done\n", step);
    }
    return reducer.join();
}

bool understand(const std::string& argument, Settings& settings) {
    const auto value = argument.substr(std::min(argument.find('=') + 1, argument.size()));
    const auto milliseconds = [&] { return std::chrono::milliseconds(std::atol(value.c_str())); };
    if (argument == "--uneven") {
        settings.isUneven = true;
    } else if (argument.starts_with("--fault=")) {
        settings.fault = value;
    } else if (argument.starts_with("--warn-after-ms=")) {
        settings.limits.warnAfter = milliseconds();
    } else if (argument.starts_with("--give-up-after-ms=")) {
        settings.limits.giveUpAfter = milliseconds();
    } else {
        return false;
    }
    return true;
}

int giveUp(const isthmus::Status& why) {
    std::fprintf(stderr, "sgd: %s\n", why.what().c_str());
    return 1;
}

int compare(const Model& model, int ranks, bool isUneven) {
    const Model alone = trainAlone(ranks, isUneven);
    double worst = 0;
    for (std::size_t tensor = 0; tensor < kTensors; ++tensor) {
        for (std::size_t i = 0; i < kSizes[tensor]; ++i) {
            worst = std::max(worst, std::fabs(static_cast<double>(model[tensor][i]) -
                                              static_cast<double>(alone[tensor][i])));
        }
    }
    std::printf("%d ranks, difference from one process %.2e\n", ranks, worst);
    return worst < 1e-6 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
    Settings settings;
    for (int i = 1; i < count; ++i) {
        if (understand(arguments[i], settings)) continue;
        std::fprintf(stderr, "sgd: unknown argument %s\n", arguments[i]);
        return 2;
    }
    auto communicator = isthmus::Communicator::fromEnvironment({.name = "gradients"});
    if (!communicator.ok()) return giveUp(communicator.status());
    const int rank = communicator->rank();
    const int ranks = communicator->ranks();
    // Everybody begins with the weights of rank 0.
    Model model = makeModel(static_cast<unsigned>(rank) + 1);
    for (auto& weights : model) {
        if (auto status = communicator->blocking().broadcast(weights, 0); !status.ok())
            return giveUp(status);
    }
    FusingReducer reducer(std::move(*communicator), settings.limits);
    if (auto status = train(reducer, model, rank, ranks, settings); !status.ok()) {
        std::fflush(stdout);
        giveUp(status);
        // The others may wait for this rank; its end tells them.
        std::_Exit(1);
    }
    return rank == 0 ? compare(model, ranks, settings.isUneven) : 0;
}
