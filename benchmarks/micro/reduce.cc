// Reductions and copies as the engine runs them: several sources, random data (zeros are written
// faster than anything else). bytes_per_second counts the result once.

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "comm/memory/arena.hpp"
#include "comm/memory/scratch_pool.hpp"
#include "comm/reduce/reducer.hpp"

namespace isthmus {
namespace {

/// Which bits are random and which are set, so that floating numbers have the exponent of one:
/// subnormal numbers cost extra.
struct Pattern {
    std::uint64_t random = ~std::uint64_t(0);
    std::uint64_t set = 0;
};

Pattern patternOf(DataType type) {
    switch (type) {
    case DataType::kFloat16:
        return {0x83FF83FF83FF83FFu, 0x3C003C003C003C00u};
    case DataType::kBfloat16:
        return {0x807F807F807F807Fu, 0x3F803F803F803F80u};
    case DataType::kFloat32:
        return {0x807FFFFF807FFFFFu, 0x3F8000003F800000u};
    default:
        return {};
    }
}

std::vector<std::uint64_t> randomWords(std::size_t bytes, Pattern pattern = {}) {
    std::mt19937_64 random(bytes);
    std::vector<std::uint64_t> words(bytes / 8 + 8);
    for (std::uint64_t& word : words) word = (random() & pattern.random) | pattern.set;
    return words;
}

void reduceSources(benchmark::State& state, DataType type, ReduceOp op, bool streaming) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const auto count = static_cast<std::size_t>(state.range(1));
    std::vector<std::vector<std::uint64_t>> buffers;
    std::vector<const void*> sources;
    for (std::size_t s = 0; s < count; ++s) buffers.push_back(randomWords(bytes, patternOf(type)));
    for (const auto& buffer : buffers) sources.push_back(buffer.data());
    std::vector<std::uint64_t> result = randomWords(bytes);
    void* const target = result.data();
    for (auto _ : state) {
        reduceToMany(type, op, {&target, 1}, sources, bytes / bytesOf(type), 0.5, streaming);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void sizesAndSources(benchmark::internal::Benchmark* benchmark) {
    for (const std::int64_t bytes : {64, 4 << 10, 256 << 10, 8 << 20, 64 << 20}) {
        for (const std::int64_t sources : {2, 4, 8}) benchmark->Args({bytes, sources});
    }
}

BENCHMARK_CAPTURE(reduceSources, f32_sum, DataType::kFloat32, ReduceOp::kSum, false)
    ->Apply(sizesAndSources);
BENCHMARK_CAPTURE(reduceSources, bf16_sum, DataType::kBfloat16, ReduceOp::kSum, false)
    ->Apply(sizesAndSources);
BENCHMARK_CAPTURE(reduceSources, f16_sum, DataType::kFloat16, ReduceOp::kSum, false)
    ->Apply(sizesAndSources);
BENCHMARK_CAPTURE(reduceSources, f32_max, DataType::kFloat32, ReduceOp::kMax, false)
    ->Apply(sizesAndSources);
BENCHMARK_CAPTURE(reduceSources, i64_sum, DataType::kInt64, ReduceOp::kSum, false)
    ->Apply(sizesAndSources);
BENCHMARK_CAPTURE(reduceSources, f32_sum_streaming, DataType::kFloat32, ReduceOp::kSum, true)
    ->Args({256 << 10, 2})
    ->Args({64 << 20, 2})
    ->Args({64 << 20, 4});

void copy(benchmark::State& state, bool streaming) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const std::vector<std::uint64_t> source = randomWords(bytes);
    std::vector<std::uint64_t> target = randomWords(bytes);
    for (auto _ : state) {
        copyBytes(target.data(), source.data(), bytes, streaming);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

BENCHMARK_CAPTURE(copy, plain, false)->Arg(256 << 10)->Arg(8 << 20)->Arg(64 << 20);
BENCHMARK_CAPTURE(copy, streaming, true)->Arg(256 << 10)->Arg(8 << 20)->Arg(64 << 20);

/// What the engine pays per call for scratch that waits in the pool.
void takeAndGiveScratch(benchmark::State& state) {
    auto arena = Arena::create(std::size_t(64) << 20);
    if (!arena.ok()) return state.SkipWithError("no arena");
    ScratchPool pool(**arena);
    for (auto _ : state) {
        const auto block = pool.take(static_cast<std::size_t>(state.range(0)));
        if (!block.ok()) return state.SkipWithError("no scratch");
        pool.give(*block);
    }
}

BENCHMARK(takeAndGiveScratch)->Arg(4096)->Arg(1 << 20);

}  // namespace
}  // namespace isthmus

BENCHMARK_MAIN();
