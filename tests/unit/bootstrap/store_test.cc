#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "comm/base/bytes.hpp"
#include "comm/bootstrap/store_file.hpp"
#include "comm/bootstrap/store_memory.hpp"
#include "comm/bootstrap/store_prefix.hpp"
#include "comm/bootstrap/store_tcp.hpp"

namespace isthmus {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Two views of one store, as two ranks have them, and what must live behind them.
class World {
public:
    virtual ~World() = default;
    virtual Store& first() = 0;
    virtual Store& second() = 0;
};

class MemoryWorld final : public World {
public:
    Store& first() override { return store_; }
    Store& second() override { return store_; }

private:
    MemoryStore store_;
};

class PrefixWorld final : public World {
public:
    Store& first() override { return one_; }
    Store& second() override { return other_; }

private:
    MemoryStore store_;
    PrefixStore one_{store_, "job"};
    PrefixStore other_{store_, "job"};
};

class FileWorld final : public World {
public:
    FileWorld() {
        char pattern[] = "/tmp/isthmus-store-XXXXXX";
        folder_ = ::mkdtemp(pattern);
        first_ = std::move(*FileStore::open(folder_ + "/s"));
        second_ = std::move(*FileStore::open(folder_ + "/s"));
    }
    ~FileWorld() override { std::filesystem::remove_all(folder_); }
    Store& first() override { return *first_; }
    Store& second() override { return *second_; }

private:
    std::string folder_;
    std::unique_ptr<FileStore> first_;
    std::unique_ptr<FileStore> second_;
};

class TcpWorld final : public World {
public:
    explicit TcpWorld(const char* place) {
        server_ = std::move(*TcpStoreServer::start(*parseHostPort(place), key_));
        first_ = std::move(*TcpStore::connect(server_->place(), key_, milliseconds(2000)));
        second_ = std::move(*TcpStore::connect(server_->place(), key_, milliseconds(2000)));
    }
    Store& first() override { return *first_; }
    Store& second() override { return *second_; }

private:
    JobKey key_ = *JobKey::random();
    std::unique_ptr<TcpStoreServer> server_;
    std::unique_ptr<TcpStore> first_;
    std::unique_ptr<TcpStore> second_;
};

struct Kind {
    const char* name;
    std::function<std::unique_ptr<World>()> make;
};

class AnyStore : public ::testing::TestWithParam<Kind> {
protected:
    void SetUp() override { world_ = GetParam().make(); }
    Store& first() { return world_->first(); }
    Store& second() { return world_->second(); }

private:
    std::unique_ptr<World> world_;
};

milliseconds since(steady_clock::time_point start) {
    return std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
}

TEST_P(AnyStore, OthersReadWhatOneWrote) {
    ASSERT_TRUE(first().set("a", toBytes("value")).ok());
    const auto value = second().get("a", milliseconds(1000));
    ASSERT_TRUE(value.ok()) << value.status().what();
    EXPECT_EQ(toText(*value), "value");
    EXPECT_TRUE(*second().has("a"));
    EXPECT_FALSE(*second().has("b"));
}

TEST_P(AnyStore, ValuesMayBeEmptyOrLargeAndKeysOfAnyBytes) {
    Bytes large(3'000'001);
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7);
    const std::string odd("A/../\0\n\xff", 8);
    ASSERT_TRUE(first().set("empty", {}).ok());
    ASSERT_TRUE(first().set("large", large).ok());
    ASSERT_TRUE(first().set(odd, toBytes("odd")).ok());
    ASSERT_TRUE(first().set(std::string(8000, 'k'), toBytes("long")).ok());
    EXPECT_EQ(*second().get("empty", milliseconds(1000)), Bytes());
    EXPECT_EQ(*second().get("large", milliseconds(1000)), large);
    EXPECT_EQ(toText(*second().get(odd, milliseconds(1000))), "odd");
    EXPECT_EQ(toText(*second().get(std::string(8000, 'k'), milliseconds(1000))), "long");
}

TEST_P(AnyStore, ValuesAreWrittenOnce) {
    ASSERT_TRUE(first().set("once", toBytes("1")).ok());
    EXPECT_TRUE(second().set("once", toBytes("1")).ok()) << "the same bytes again";
    const Status other = second().set("once", toBytes("2"));
    EXPECT_EQ(other.code(), Status::Code::kMismatch);
    EXPECT_NE(other.what().find("once"), std::string::npos);
    ASSERT_TRUE(second().erase("once").ok());
    ASSERT_TRUE(second().erase("once").ok()) << "nothing there";
    EXPECT_TRUE(first().set("once", toBytes("2")).ok());
}

TEST_P(AnyStore, GetWaitsForALateWriterAndCostsNothing) {
    rusage before{};
    ::getrusage(RUSAGE_SELF, &before);
    std::thread late([this] {
        std::this_thread::sleep_for(milliseconds(200));
        EXPECT_TRUE(second().set("late", toBytes("x")).ok());
    });
    const auto start = steady_clock::now();
    const auto value = first().get("late", milliseconds(5000));
    const auto waited = since(start);
    late.join();
    ASSERT_TRUE(value.ok()) << value.status().what();
    EXPECT_GE(waited, milliseconds(190));
    EXPECT_LT(waited, milliseconds(1500));
    rusage after{};
    ::getrusage(RUSAGE_SELF, &after);
    const auto cpu = [](const rusage& use) {
        return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
               (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
    };
    EXPECT_LT(cpu(after) - cpu(before), 50) << "milliseconds of CPU in 200 ms of waiting";
}

TEST_P(AnyStore, GetEndsAtItsLimit) {
    const auto start = steady_clock::now();
    const auto value = first().get("never", milliseconds(120));
    const auto waited = since(start);
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.status().code(), Status::Code::kTimeout);
    EXPECT_EQ(value.status().what().substr(0, 17), "waited 120 ms for");
    EXPECT_GE(waited, milliseconds(115));
    EXPECT_LT(waited, milliseconds(1000));
    EXPECT_EQ(first().get("never", milliseconds(0)).status().code(), Status::Code::kTimeout);
}

TEST_P(AnyStore, AWaitingGetHoldsUpNobody) {
    std::thread waiter([this] {
        const auto value = first().get("signal", milliseconds(5000));
        EXPECT_TRUE(value.ok());
    });
    std::this_thread::sleep_for(milliseconds(30));
    const auto start = steady_clock::now();
    EXPECT_TRUE(first().set("other", toBytes("x")).ok());
    EXPECT_TRUE(first().set("signal", toBytes("x")).ok());
    waiter.join();
    EXPECT_LT(since(start), milliseconds(1000));
}

TEST_P(AnyStore, TooLargeKeysAndValuesAreRefused) {
    EXPECT_EQ(first().set(std::string(8193, 'k'), {}).code(), Status::Code::kInvalidArgument);
    EXPECT_EQ(first().get(std::string(8193, 'k'), milliseconds(1)).status().code(),
              Status::Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(
    Stores, AnyStore,
    ::testing::Values(Kind{"memory", [] { return std::make_unique<MemoryWorld>(); }},
                      Kind{"prefix", [] { return std::make_unique<PrefixWorld>(); }},
                      Kind{"file", [] { return std::make_unique<FileWorld>(); }},
                      Kind{"tcp4", [] { return std::make_unique<TcpWorld>("127.0.0.1:0"); }},
                      Kind{"local",
                           [] {
                               const auto name = "@isthmus-test-" + (*JobKey::random()).hex();
                               return std::make_unique<TcpWorld>(name.c_str());
                           }}),
    [](const auto& kind) { return std::string(kind.param.name); });

TEST(PrefixStore, KeepsPartsApart) {
    MemoryStore all;
    PrefixStore one(all, "one");
    PrefixStore two(all, "two");
    ASSERT_TRUE(one.set("k", toBytes("1")).ok());
    ASSERT_TRUE(two.set("k", toBytes("2")).ok());
    EXPECT_EQ(toText(*all.get("one/k", milliseconds(0))), "1");
    EXPECT_EQ(toText(*two.get("k", milliseconds(0))), "2");
}

TEST(FileStore, RefusesAFolderThatOthersMayWrite) {
    char pattern[] = "/tmp/isthmus-store-XXXXXX";
    const std::string folder = ::mkdtemp(pattern);
    ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
    const auto store = FileStore::open(folder);
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().code(), Status::Code::kConfiguration);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace isthmus
