// The deterministic option over and over: one SHA-256 per size, whatever the layout, the transport,
// the segments, the collective and the load of the machine.
// same_bits [--repeats N] [--burners N]: a table, then "N passed, N failed, 0 skipped".
#include <openssl/sha.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>

#include "tests/conformance/collective/fold.hpp"
#include "tests/support/local_job.hpp"

namespace isthmus::conformance {
namespace {

using Wires = LocalJob::Wires;

constexpr int kRanks = 4;
constexpr Rank kRoot = 1;
constexpr std::size_t kSizes[] = {1, 17, 4097, 30011, 100003};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16,
                               DataType::kBfloat16};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProd};

struct Layout {
    const char* name;
    std::vector<int> nodeOfRank;
};
const std::vector<Layout>& layouts() {
    static const std::vector<Layout> all = {{"one node", {0, 0, 0, 0}},
                                            {"2+2", {0, 0, 1, 1}},
                                            {"round robin", {0, 1, 0, 1}},
                                            {"3+1", {0, 0, 0, 1}}};
    return all;
}
struct Transport {
    const char* name;
    Wires wires;
};
constexpr Transport kTransports[] = {
    {"inproc", Wires::kInproc}, {"shm", Wires::kShm}, {"tcp", Wires::kTcp}};

std::string sha256(const Buffer& bytes) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
    std::string text;
    for (const unsigned char byte : digest) {
        char digits[3];
        std::snprintf(digits, sizeof(digits), "%02x", unsigned(byte));
        text += digits;
    }
    return text;
}

/// What all calls of one size give, type after type and operator after operator; made once.
struct Problem {
    explicit Problem(std::size_t count) : elements(count) {
        for (const DataType type : kTypes) {
            for (const ReduceOp op : kOps) {
                for (Rank rank = 0; rank < kRanks; ++rank)
                    operands[rank].push_back(unevenOperand(type, op, rank, elements));
                const Buffer fold = foldOf(type, op, kRanks, elements);
                wanted.insert(wanted.end(), fold.begin(), fold.end());
            }
        }
        digest = sha256(wanted);
    }

    std::size_t elements;
    std::vector<Buffer> operands[kRanks];
    Buffer wanted;
    std::string digest;
};

/// Results of one size in one job: of all-reduce at every rank, of reduce at the root, and of
/// reduce-scatter put together from all ranks.
struct Results {
    explicit Results(std::size_t bytes) { buffers.fill(Buffer(bytes)); }
    std::byte* of(Collective collective, Rank rank) {
        const std::size_t which = collective == Collective::kAllReduce ? std::size_t(rank)
                                  : collective == Collective::kReduce  ? kRanks
                                                                       : kRanks + 1;
        return buffers[which].data();
    }
    std::array<Buffer, kRanks + 2> buffers;
};

void runCall(Communicator& communicator, Collective collective, DataType type, ReduceOp op,
             std::size_t elements, const Buffer& input, std::byte* result) {
    const Rank me = communicator.rank();
    CallRequest request;
    request.collective = collective;
    request.type = type;
    request.op = op;
    request.input = input.data();
    if (collective != Collective::kReduce || me == kRoot) request.output = result;
    request.counts.uniform = elements;
    if (collective == Collective::kReduce) request.root = kRoot;
    if (collective == Collective::kReduceScatter) {
        request.counts.each.assign(kRanks, elements / kRanks);
        request.counts.each.back() += elements % kRanks;
        request.output = result + std::size_t(me) * (elements / kRanks) * bytesOf(type);
    }
    CallOptions options;
    options.isDeterministic = true;
    options.isBlocking = true;
    const auto work = communicator.call(std::move(request), options);
    if (work->status().ok()) return;
    std::fprintf(stderr, "%s\n", work->status().what().c_str());
    std::exit(1);
}

void runSize(Communicator& communicator, const Problem& problem, Results& results,
             std::minstd_rand& random) {
    const Rank me = communicator.rank();
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kReduce, Collective::kReduceScatter}) {
        std::byte* result = results.of(collective, me);
        std::size_t at = 0;
        for (const DataType type : kTypes) {
            for (const ReduceOp op : kOps) {
                // No two repeats meet in the same order.
                if (random() % 8 == 0)
                    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
                const Buffer& input = problem.operands[me][at++];
                runCall(communicator, collective, type, op, problem.elements, input, result);
                result += input.size();
            }
        }
    }
}

struct Tally {
    int same = 0;
    int other = 0;
};

void runRepeat(const Layout& layout, Wires wires, int repeat, const std::vector<Problem>& problems,
               std::vector<Tally>& tallies) {
    static constexpr const char* kSegments[] = {"1M", "8K", "64K", "20000"};
    LocalJob job(layout.nodeOfRank,
                 {{"ISTHMUS_SEGMENT", kSegments[repeat % 4]},
                  {"ISTHMUS_WINDOW", std::to_string(1 + repeat % 3)},
                  {"ISTHMUS_TIMEOUT", "120000"}},
                 wires);
    std::vector<Results> results;
    for (const Problem& problem : problems) results.emplace_back(problem.wanted.size());
    job.run([&](Rank rank, Communicator& communicator) {
        std::minstd_rand random(static_cast<unsigned>(1 + rank + kRanks * repeat));
        for (std::size_t size = 0; size < problems.size(); ++size)
            runSize(communicator, problems[size], results[size], random);
    });
    for (std::size_t size = 0; size < problems.size(); ++size) {
        for (const Buffer& buffer : results[size].buffers)
            ++(sha256(buffer) == problems[size].digest ? tallies[size].same : tallies[size].other);
    }
}

struct Asked {
    int repeats = 2;
    int burners = 0;
};

std::optional<Asked> parse(int argc, char** argv) {
    Asked asked;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i];
        const int value = i + 1 < argc ? std::atoi(argv[i + 1]) : -1;
        if (value < 0 || (name != "--repeats" && name != "--burners")) return std::nullopt;
        (name == "--repeats" ? asked.repeats : asked.burners) = value;
    }
    return asked;
}

int run(const Asked& asked) {
    std::atomic<bool> isOver = false;
    std::vector<std::thread> burners;
    for (int i = 0; i < asked.burners; ++i)
        burners.emplace_back([&] {
            while (!isOver.load(std::memory_order_relaxed)) continue;
        });
    std::vector<Problem> problems;
    for (const std::size_t size : kSizes) problems.emplace_back(size);
    for (const Problem& problem : problems)
        std::printf("%7zu elements: %s\n", problem.elements, problem.digest.c_str());
    int failed = 0;
    for (const Layout& layout : layouts()) {
        for (const Transport& transport : kTransports) {
            std::vector<Tally> tallies(problems.size());
            for (int repeat = 0; repeat < asked.repeats; ++repeat)
                runRepeat(layout, transport.wires, repeat, problems, tallies);
            std::printf("%-12s %-7s", layout.name, transport.name);
            for (const Tally& tally : tallies) {
                std::printf(" %5d/%d", tally.same, tally.same + tally.other);
                failed += tally.other > 0 || tally.same == 0;
            }
            std::printf("\n");
            std::fflush(stdout);
        }
    }
    isOver = true;
    for (std::thread& burner : burners) burner.join();
    const int cells = static_cast<int>(layouts().size() * std::size(kTransports) * problems.size());
    std::printf("%d passed, %d failed, 0 skipped\n", cells - failed, failed);
    return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace isthmus::conformance

int main(int argc, char** argv) {
    const auto asked = isthmus::conformance::parse(argc, argv);
    if (!asked) {
        std::fputs("same_bits [--repeats N] [--burners N]\n", stderr);
        return 2;
    }
    return isthmus::conformance::run(*asked);
}
