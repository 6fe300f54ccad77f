#include "comm/transport/rma/rma_transport.hpp"
#include "tests/conformance/transport/transport_world.hpp"
#include "tests/support/rma/device_kinds.hpp"

namespace isthmus {

namespace {

class RmaWorld final : public WallWorld {
public:
    RmaWorld(const std::string& kind, int members) {
        const JobKey key = JobKey::derivedFrom("conformance");
        RmaOptions options;
        options.door.cards = {{"lo", "127.0.0.1"}};
        for (int position = 0; position < members; ++position) {
            auto member = std::make_unique<Member>();
            member->id = idOf(position);
            auto device = makeDevice(kind, position);
            EXPECT_TRUE(device.ok()) << device.status().what();
            auto made = makeRmaTransport(std::move(*device), options, member->id, key,
                                         member->sleepSet, member->recorder);
            EXPECT_TRUE(made.ok()) << made.status().what();
            member->transport = std::move(*made);
            add(std::move(member));
        }
    }

    bool freesAtOnce() const override { return false; }
};

}  // namespace

std::unique_ptr<TransportWorld> makeRmaWorld(const std::string& kind, int members) {
    if (!isDeviceKind(kind)) return nullptr;
    return std::make_unique<RmaWorld>(kind, members);
}

}  // namespace isthmus
