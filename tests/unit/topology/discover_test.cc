#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "topology/discover/container_limits.hpp"
#include "topology/discover/machine.hpp"
#include "topology/discover/net_device.hpp"
#include "topology/discover/rdma_device.hpp"

namespace isthmus {
namespace {

namespace fs = std::filesystem;

/// A tree of small files that stands for /sys or /.
class Tree : public ::testing::Test {
protected:
    void SetUp() override {
        char pattern[] = "/tmp/isthmus-tree-XXXXXX";
        root_ = ::mkdtemp(pattern);
    }
    void TearDown() override { fs::remove_all(root_); }
    void write(const std::string& path, const std::string& text) {
        fs::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
        std::ofstream(root_ + path) << text << "\n";
    }
    std::string root_;
};

TEST(Machine, AgreesWithTheSystem) {
    const auto machine = discoverMachine();
    ASSERT_TRUE(machine.ok()) << machine.status().what();
    EXPECT_EQ(machine->processors, ::sysconf(_SC_NPROCESSORS_ONLN));
    EXPECT_GE(machine->cores, 1);
    EXPECT_GE(machine->processors, machine->cores);
    EXPECT_GE(machine->allowedProcessors.value, 1);
    EXPECT_LE(machine->allowedProcessors.value, machine->processors);
    EXPECT_FALSE(machine->numaNodes.empty());
    const auto pages = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES));
    EXPECT_GT(machine->memoryBytes.value, pages * ::sysconf(_SC_PAGESIZE) / 2);
}

TEST(NetDevice, LoopbackIsThere) {
    const auto devices = discoverNetDevices();
    ASSERT_TRUE(devices.ok());
    const auto lo = std::find_if(devices->begin(), devices->end(),
                                 [](const NetDevice& device) { return device.name == "lo"; });
    ASSERT_NE(lo, devices->end());
    EXPECT_TRUE(lo->isLoopback);
    EXPECT_TRUE(lo->isVirtual);
    EXPECT_FALSE(lo->bitsPerSecond.isKnown());
    ASSERT_FALSE(lo->addresses.empty());
    EXPECT_EQ(lo->addresses.front(), (NetAddress{"127.0.0.1", 8, false, false}));
}

TEST_F(Tree, NetDeviceSpeedComesFromSysfs) {
    write("/class/net/lo/speed", "25000");
    write("/class/net/lo/mtu", "9000");
    write("/class/net/lo/device/numa_node", "1");
    const auto devices = discoverNetDevices(root_);
    ASSERT_TRUE(devices.ok());
    for (const NetDevice& device : *devices) {
        if (device.name != "lo") continue;
        EXPECT_EQ(device.bitsPerSecond.value, 25'000'000'000);
        EXPECT_EQ(device.bitsPerSecond.from, Provenance::kReported);
        EXPECT_EQ(device.largestUnitBytes.value, 9000);
        EXPECT_EQ(device.numaNode, 1);
        EXPECT_FALSE(device.isVirtual);
    }
}

TEST(NetDevice, TheWayToLoopbackIsLoopback) {
    EXPECT_EQ(*addressTowards("127.0.0.9"), "127.0.0.1");
    EXPECT_TRUE(isLoopbackAddress("127.0.1.1"));
    EXPECT_TRUE(isLoopbackAddress("::1"));
    EXPECT_FALSE(isLoopbackAddress("10.77.0.1"));
}

TEST_F(Tree, TightestLimitOfTheGroupsCounts) {
    write("/proc/self/cgroup", "0::/job/rank");
    write("/sys/fs/cgroup/cpu.max", "max 100000");
    write("/sys/fs/cgroup/job/cpu.max", "150000 100000");
    write("/sys/fs/cgroup/job/rank/cpu.max", "400000 100000");
    write("/sys/fs/cgroup/job/memory.max", "1073741824");
    write("/sys/fs/cgroup/job/rank/memory.max", "max");
    const auto limits = discoverContainerLimits(root_);
    EXPECT_EQ(limits.processors.value, 1.5);
    EXPECT_EQ(limits.processors.where, root_ + "/sys/fs/cgroup/job/cpu.max");
    EXPECT_EQ(limits.memoryBytes.value, 1073741824);
}

TEST_F(Tree, OldGroupsAreReadToo) {
    write("/proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n2:cpuset:/job");
    write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000");
    write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
    write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    const auto limits = discoverContainerLimits(root_);
    EXPECT_EQ(limits.processors.value, 0.5);
    EXPECT_FALSE(limits.memoryBytes.isKnown());
}

TEST_F(Tree, NoGroupsMeanNoLimits) {
    const auto limits = discoverContainerLimits(root_);
    EXPECT_FALSE(limits.processors.isKnown());
    EXPECT_FALSE(limits.memoryBytes.isKnown());
}

TEST_F(Tree, RdmaPortsAreListed) {
    const std::string card = "/class/infiniband/mlx5_0";
    write(card + "/ports/1/state", "4: ACTIVE");
    write(card + "/ports/1/rate", "100 Gb/sec (4X EDR)");
    write(card + "/ports/1/link_layer", "Ethernet");
    write(card + "/device/net/eth3/mtu", "1500");
    write(card + "/device/numa_node", "0");
    write("/class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
    const auto ports = discoverRdmaPorts(root_);
    ASSERT_EQ(ports.size(), 2u);
    EXPECT_EQ(ports[0].device, "mlx5_0");
    EXPECT_TRUE(ports[0].isActive);
    EXPECT_EQ(ports[0].bitsPerSecond.value, 100'000'000'000);
    EXPECT_EQ(ports[0].netDevice, "eth3");
    EXPECT_FALSE(ports[1].isActive);
    EXPECT_FALSE(ports[1].bitsPerSecond.isKnown());
    EXPECT_TRUE(discoverRdmaPorts(root_ + "/nowhere").empty());
}

}  // namespace
}  // namespace isthmus
