#include "comm/bootstrap/launch_environment.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;
using Names = std::vector<std::string>;

Result<LaunchEnvironment> read(Variables variables) {
    return readLaunchEnvironment({std::move(variables), "mpirun 4711 88", 1000});
}

std::string mistake(Variables variables) {
    const auto found = read(std::move(variables));
    if (found.ok()) return "no mistake: " + found->explanation;
    EXPECT_EQ(found.status().code(), Status::Code::kConfiguration);
    return found.status().what();
}

Variables with(Variables base, const Variables& more) {
    for (const auto& [name, value] : more) base[name] = value;
    return base;
}

const Variables kTorchrun = {{"RANK", "5"},         {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},   {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "h1"}, {"MASTER_PORT", "29500"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "524615681"}};

TEST(LaunchEnvironment, NothingIsAWorldOfOne) {
    const auto found = read({{"PATH", "/bin"}, {"SLURM_NTASKS", "8"}});
    ASSERT_TRUE(found.ok()) << found.status().what();
    EXPECT_EQ(found->launcher, Launcher::kNone);
    EXPECT_EQ(found->ranks, 1);
    EXPECT_TRUE(found->store.empty());
    EXPECT_TRUE(found->isOneNode());
}

TEST(LaunchEnvironment, IsthmusRunComesFirst) {
    auto torchrun = kTorchrun;
    torchrun["RANK"] = "2";
    torchrun["WORLD_SIZE"] = "4";
    const auto found = read(with(torchrun, {{"ISTHMUS_RANK", "2"},
                                            {"ISTHMUS_WORLD_SIZE", "4"},
                                            {"ISTHMUS_LOCAL_RANK", "0"},
                                            {"ISTHMUS_LOCAL_WORLD_SIZE", "2"},
                                            {"ISTHMUS_STORE", "10.77.0.1:7000"}}));
    ASSERT_TRUE(found.ok()) << found.status().what();
    EXPECT_EQ(found->launcher, Launcher::kIsthmus);
    EXPECT_EQ(found->rank, 2);
    EXPECT_EQ(found->ranks, 4);
    EXPECT_EQ(found->localRanks, 2);
    EXPECT_FALSE(found->isOneNode());
    EXPECT_EQ(found->store, "10.77.0.1:7000");
    EXPECT_EQ(found->explanation,
              "rank 2 of 4 from isthmus run (ISTHMUS_RANK 2, ISTHMUS_WORLD_SIZE 4), store "
              "10.77.0.1:7000 (ISTHMUS_STORE)");
}

TEST(LaunchEnvironment, TorchrunKeepsTorchsPortFree) {
    const auto found = read(kTorchrun);
    ASSERT_TRUE(found.ok()) << found.status().what();
    EXPECT_EQ(found->launcher, Launcher::kTorchrun);
    EXPECT_EQ(found->rank, 5);
    EXPECT_EQ(found->localRank, 1);
    EXPECT_EQ(found->store, "h1:29501");
    EXPECT_EQ(read(with(kTorchrun, {{"MASTER_ADDR", "[fd77::1]"}}))->store, "[fd77::1]:29501");
    EXPECT_EQ(read(with(kTorchrun, {{"MASTER_ADDR", "fd77::1"}}))->store, "[fd77::1]:29501");
    EXPECT_EQ(read(with(kTorchrun, {{"MASTER_PORT", "65535"}}))->store, "h1:65534");
    EXPECT_EQ(read(with(kTorchrun, {{"ISTHMUS_STORE", "h2:1"}}))->store, "h2:1");
}

TEST(LaunchEnvironment, OneNodeMeetsUnderALocalName) {
    const auto one = read(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "8"}}));
    ASSERT_TRUE(one.ok()) << one.status().what();
    EXPECT_EQ(one->store.substr(0, 14), "@isthmus-1000-");
    const auto restarted =
        read(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "8"}, {"TORCHELASTIC_RESTART_COUNT", "1"}}));
    EXPECT_NE(restarted->store, one->store);
    const auto sibling = read(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "8"}, {"RANK", "6"}}));
    EXPECT_EQ(sibling->store, one->store);
    const auto open = read(kOpenMpi);
    ASSERT_TRUE(open.ok()) << open.status().what();
    EXPECT_EQ(open->launcher, Launcher::kOpenMpi);
    EXPECT_EQ(open->rank, 3);
    EXPECT_EQ(open->store[0], '@');
}

TEST(LaunchEnvironment, TheJobsIdIsTheSameOnAllNodes) {
    const auto here = read(with(kTorchrun, {{"MASTER_ADDR", "fd77::1"},
                                            {"TORCHELASTIC_RUN_ID", "7"},
                                            {"TORCHELASTIC_RESTART_COUNT", "1"}}));
    const auto there = read(with(kTorchrun, {{"MASTER_ADDR", "[fd77::1]"},
                                             {"TORCHELASTIC_RUN_ID", "7"},
                                             {"TORCHELASTIC_RESTART_COUNT", "0"},
                                             {"RANK", "0"},
                                             {"LOCAL_RANK", "0"}}));
    const auto other = read(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "8"}}));
    ASSERT_TRUE(here.ok() && there.ok() && other.ok());
    EXPECT_EQ(here->jobId, there->jobId);
    EXPECT_NE(here->jobId, other->jobId);
}

TEST(LaunchEnvironment, PmiIsToldApartByItsLauncher) {
    const Variables pmi = {
        {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
    const auto one = readLaunchEnvironment({pmi, "hydra_pmi_proxy 10 5", 0});
    const auto other = readLaunchEnvironment({pmi, "hydra_pmi_proxy 11 5", 0});
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_EQ(one->launcher, Launcher::kPmi);
    EXPECT_NE(one->store, other->store);
}

TEST(LaunchEnvironment, SeveralNodesOfMpiNeedAPlaceToMeet) {
    const auto spread = with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
    EXPECT_NE(mistake(spread).find("set ISTHMUS_STORE=host:port"), std::string::npos);
    EXPECT_EQ(read(with(spread, {{"ISTHMUS_STORE", "h1:7000"}}))->store, "h1:7000");
    EXPECT_EQ(read(with(spread, {{"MASTER_ADDR", "h1"}, {"MASTER_PORT", "7000"}}))->store,
              "h1:7001");
}

TEST(LaunchEnvironment, SlurmMeetsAtItsFirstNode) {
    const Variables slurm = {{"SLURM_PROCID", "2"},  {"SLURM_NTASKS", "3"},
                             {"SLURM_LOCALID", "0"}, {"SLURM_NODELIST", "n[01-02,07]"},
                             {"SLURM_JOB_ID", "99"}, {"SLURM_NNODES", "3"}};
    const auto found = read(slurm);
    ASSERT_TRUE(found.ok()) << found.status().what();
    EXPECT_EQ(found->launcher, Launcher::kSlurm);
    EXPECT_EQ(found->rank, 2);
    EXPECT_EQ(found->store.substr(0, 4), "n01:");
    const int port = std::stoi(found->store.substr(4));
    EXPECT_GE(port, 20000);
    EXPECT_LT(port, 30000);
    EXPECT_EQ(read(with(slurm, {{"SLURM_PROCID", "0"}}))->store, found->store);
    EXPECT_NE(read(with(slurm, {{"SLURM_JOB_ID", "100"}}))->store, found->store);
    EXPECT_EQ(read(with(slurm, {{"SLURM_NNODES", "1"}}))->store[0], '@');
    EXPECT_EQ(read(with(slurm, {{"SLURM_STEP_NUM_TASKS", "9"}}))->ranks, 9);
}

// What `srun -n 5` sets on three nodes, as Slurm 22.05 prints it.
Variables slurmStep(const std::string& rank, const std::string& node) {
    return {{"SLURM_PROCID", rank},
            {"SLURM_NTASKS", "5"},
            {"SLURM_NODEID", node},
            {"SLURM_JOB_ID", "99"},
            {"SLURM_STEP_ID", "0"},
            {"SLURM_TASK_PID", "4711"},
            {"SLURM_NNODES", "3"},
            {"SLURM_STEP_NUM_TASKS", "5"},
            {"SLURM_STEP_NUM_NODES", "3"},
            {"SLURM_STEP_NODELIST", "n[1-3]"},
            {"SLURM_TASKS_PER_NODE", "2(x2),1"},
            {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"}};
}

TEST(LaunchEnvironment, SlurmCountsTheTasksOfEachNode) {
    EXPECT_EQ(read(slurmStep("0", "0"))->localRanks, 2);
    EXPECT_EQ(read(slurmStep("3", "1"))->localRanks, 2);
    EXPECT_EQ(read(slurmStep("4", "2"))->localRanks, 1);
    EXPECT_EQ(read(slurmStep("4", "3"))->localRanks, 0) << "no such node";
    const Variables allocation = {{"SLURM_STEP_TASKS_PER_NODE", ""},
                                  {"SLURM_TASKS_PER_NODE", "8(x3)"}};
    EXPECT_EQ(read(with(slurmStep("4", "2"), allocation))->localRanks, 0)
        << "of all that was granted, not of these ranks";
    const auto text = mistake(with(slurmStep("4", "2"), {{"ISTHMUS_STORE", "127.0.0.1:7000"}}));
    EXPECT_NE(text.find("1 of 5 ranks are on this node"), std::string::npos) << text;
    const Variables torch = {
        {"RANK", "4"}, {"WORLD_SIZE", "5"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};
    EXPECT_EQ(read(with(slurmStep("4", "2"), torch))->localRanks, 1);
}

TEST(LaunchEnvironment, ABatchScriptIsNoRank) {
    const Variables script = {{"SLURM_PROCID", "0"},    {"SLURM_NTASKS", "4"},
                              {"SLURM_LOCALID", "0"},   {"SLURM_NODEID", "0"},
                              {"SLURM_JOB_ID", "99"},   {"SLURM_TASK_PID", "4711"},
                              {"SLURM_NODELIST", "n1"}, {"SLURM_NNODES", "1"}};
    const auto found = read(script);
    ASSERT_TRUE(found.ok()) << found.status().what();
    EXPECT_EQ(found->launcher, Launcher::kNone);
    EXPECT_EQ(found->ranks, 1);
    EXPECT_EQ(read(with(script, {{"SLURM_STEP_ID", "0"}}))->ranks, 4);
}

TEST(LaunchEnvironment, PmiOfSrunMeetsWhereSlurmDoes) {
    const Variables pmi = {{"PMI_RANK", "4"}, {"PMI_SIZE", "5"}, {"PMI_JOBID", "99.0"}};
    const auto spread = read(with(slurmStep("4", "2"), pmi));
    ASSERT_TRUE(spread.ok()) << spread.status().what();
    EXPECT_EQ(spread->launcher, Launcher::kPmi);
    EXPECT_EQ(spread->localRanks, 1);
    EXPECT_EQ(spread->store.substr(0, 3), "n1:");
    const auto one =
        read(with(slurmStep("4", "0"), with(pmi, {{"SLURM_STEP_NUM_NODES", "1"},
                                                  {"SLURM_NNODES", "1"},
                                                  {"SLURM_TASKS_PER_NODE", "5"},
                                                  {"SLURM_STEP_TASKS_PER_NODE", "5"}})));
    ASSERT_TRUE(one.ok()) << one.status().what();
    EXPECT_EQ(one->store[0], '@');
    EXPECT_NE(mistake(with(slurmStep("3", "1"), pmi)).find("set ISTHMUS_STORE"), std::string::npos)
        << "other ranks than srun's: its nodes say nothing";
}

TEST(LaunchEnvironment, SlurmsFirstNodeMustHaveRankZero) {
    EXPECT_EQ(mistake(slurmStep("0", "2")),
              "rank 0 is not on the first node of SLURM_STEP_NODELIST, n1: set "
              "ISTHMUS_STORE=host:port, where host is that of rank 0");
    EXPECT_EQ(read(with(slurmStep("0", "2"), {{"ISTHMUS_STORE", "n3:7000"}}))->store, "n3:7000");
}

TEST(LaunchEnvironment, StepsOfOneJobMeetApart) {
    const auto first = read(slurmStep("0", "0"));
    const auto second = read(with(slurmStep("0", "0"), {{"SLURM_STEP_ID", "1"}}));
    EXPECT_NE(first->store, second->store);
    EXPECT_NE(first->jobId, second->jobId);
}

TEST(LaunchEnvironment, DisagreementNamesBoth) {
    const auto both = with(kTorchrun, kOpenMpi);
    EXPECT_EQ(mistake(both),
              "two launchers disagree: torchrun (RANK 5, WORLD_SIZE 8) and Open MPI "
              "(OMPI_COMM_WORLD_RANK 3, OMPI_COMM_WORLD_SIZE 4); unset one of them");
    EXPECT_TRUE(read(with(both, {{"RANK", "3"}, {"WORLD_SIZE", "4"}})).ok()) << "they agree";
}

TEST(LaunchEnvironment, LaunchersMayStartLaunchers) {
    const auto found = read(with(with(kTorchrun, kOpenMpi), {{"TORCHELASTIC_RUN_ID", "none"}}));
    ASSERT_TRUE(found.ok()) << found.status().what();
    EXPECT_EQ(found->rank, 5);
    EXPECT_EQ(read(with(kTorchrun, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}))->rank, 5);
}

TEST(LaunchEnvironment, NoSilentLoopbackBetweenNodes) {
    for (const char* address : {"127.0.0.1", "localhost", "::1", "[::1]"}) {
        const auto text = mistake(with(kTorchrun, {{"MASTER_ADDR", address}}));
        EXPECT_NE(text.find("which other nodes cannot reach: 4 of 8 ranks are on this node"),
                  std::string::npos)
            << text;
    }
}

TEST(LaunchEnvironment, MistakesAreNamed) {
    EXPECT_EQ(mistake({{"RANK", "1"}}), "RANK is set, WORLD_SIZE is not: set both or none");
    EXPECT_EQ(mistake({{"RANK", "x"}, {"WORLD_SIZE", "2"}}),
              "RANK says \"x\", expected a whole number, 0 or more");
    EXPECT_EQ(mistake({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
              "RANK 2 and WORLD_SIZE 2 cannot be: ranks count from 0");
    EXPECT_EQ(mistake(with(kTorchrun, {{"MASTER_PORT", "123456"}})),
              "MASTER_PORT: port 123456 is out of range, the largest is 65535");
    EXPECT_NE(mistake(with(kTorchrun, {{"MASTER_ADDR", ""}})).find("MASTER_ADDR and MASTER_PORT"),
              std::string::npos);
    EXPECT_NE(mistake(with(kTorchrun, {{"ISTHMUS_STORE", "nowhere"}})).find("has no port"),
              std::string::npos);
}

TEST(LaunchEnvironment, ReadsThisProcess) {
    const LaunchFacts facts = launchFacts();
    EXPECT_EQ(facts.variables.count("PATH"), 1u);
    EXPECT_FALSE(facts.launcherProcess.empty());
    EXPECT_EQ(facts.launcherProcess, launchFacts().launcherProcess);
}

TEST(NodeList, Expands) {
    EXPECT_EQ(*expandNodeList("n[01-02,07]"), (Names{"n01", "n02", "n07"}));
    EXPECT_EQ(*expandNodeList("login"), (Names{"login"}));
    EXPECT_EQ(*expandNodeList("a[9-11],b"), (Names{"a9", "a10", "a11", "b"}));
    EXPECT_EQ(*expandNodeList("r[1-2]n[1-2]-ib"),
              (Names{"r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"}));
    for (const char* text : {"", "n[", "n[]", "n[2-1]", "n[a-b]", "n[1-2", "n1]", "a,,b",
                             "n[1-99999999999999999999]", "n[1-9999999]"}) {
        EXPECT_FALSE(expandNodeList(text).ok()) << text;
    }
}

TEST(NodeList, ExpandsTaskCounts) {
    EXPECT_EQ(*expandTaskCounts("4"), (std::vector<int>{4}));
    EXPECT_EQ(*expandTaskCounts("2(x2),1"), (std::vector<int>{2, 2, 1}));
    EXPECT_EQ(*expandTaskCounts("1,16(x3),2(x1)"), (std::vector<int>{1, 16, 16, 16, 2}));
    for (const char* text : {"", "2(x", "2(x)", "2(x2", "x2", "2(2)", "2,,1", "-1", "2(x9999999)",
                             "99999999999", "2(x2)1"}) {
        EXPECT_FALSE(expandTaskCounts(text).ok()) << text;
    }
}

}  // namespace
}  // namespace isthmus
