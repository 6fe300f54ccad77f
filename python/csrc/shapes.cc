#include "python/csrc/shapes.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "python/csrc/communicator.hpp"
#include "python/csrc/errors.hpp"

namespace isthmus::python {

namespace {

Array given(Array array, const char* call, const char* which) {
    if (array.isNone()) refuse(std::string(call) + ": " + which + " is None");
    return array;
}

std::string title(const char* call, const char* which) {
    return std::string(call) + ": " + which;
}

}  // namespace

Pair Pair::reading(const char* call, nb::handle send) {
    Pair pair;
    pair.call = call;
    pair.send = given(Array::toRead(send, title(call, "send").c_str()), call, "send");
    return pair;
}

Pair Pair::writing(const char* call, nb::handle receive) {
    Pair pair;
    pair.call = call;
    pair.receive = given(Array::toWrite(receive, title(call, "recv").c_str()), call, "recv");
    return pair;
}

Pair Pair::of(const char* call, nb::handle send, nb::handle receive) {
    if (!receive.is_none()) return ofTwo(call, send, receive);
    Pair pair;
    pair.call = call;
    pair.send = given(Array::toWrite(send, title(call, "send").c_str()), call, "send");
    pair.receive = pair.send;
    return pair;
}

Pair Pair::ofTwo(const char* call, nb::handle send, nb::handle receive) {
    Pair pair = reading(call, send);
    pair.receive = writing(call, receive).receive;
    if (pair.send.type() != pair.receive.type()) {
        refuse(std::string(call) + ": send is of " + nameOf(pair.send.type()) + ", recv of " +
               nameOf(pair.receive.type()));
    }
    return pair;
}

void Pair::expect(const char* which, const Array& array, std::size_t elements) const {
    if (array.elements() == elements) return;
    refuse(std::string(call) + ": " + which + " has " + std::to_string(array.elements()) +
           " elements, expected " + std::to_string(elements));
}

void Pair::expectRoom(const char* which, const Array& array, std::size_t elements) const {
    if (array.elements() >= elements) return;
    refuse(std::string(call) + ": " + which + " has " + std::to_string(array.elements()) +
           " elements; the blocks reach to " + std::to_string(elements));
}

Buffers Pair::buffers() const {
    return {send.data(), receive.data(), send.elements(), receive.elements(),
            send.isNone() ? receive.type() : send.type()};
}

std::vector<Array> Pair::take() {
    std::vector<Array> arrays;
    arrays.reserve(2);
    arrays.push_back(std::move(send));
    arrays.push_back(std::move(receive));
    return arrays;
}

const std::size_t* dataOf(const PerhapsCounts& places) {
    return places ? places->data() : nullptr;
}

std::size_t extentOf(const char* call, const std::vector<std::size_t>& counts,
                     const PerhapsCounts& places, std::size_t blocks, const char* whose) {
    const auto expectAll = [&](const char* which, std::size_t entries) {
        if (entries == blocks) return;
        refuse(std::string(call) + ": " + which + " has " + std::to_string(entries) +
               " entries for " + std::to_string(blocks) + " " + whose);
    };
    expectAll("the counts", counts.size());
    if (places) expectAll("the displacements", places->size());
    std::size_t extent = 0;
    std::size_t packed = 0;
    for (std::size_t block = 0; block < blocks; ++block) {
        const std::size_t place = places ? (*places)[block] : packed;
        if (counts[block] > std::numeric_limits<std::size_t>::max() - std::max(place, packed))
            refuse(std::string(call) + ": a block ends beyond all memory");
        packed += counts[block];
        if (counts[block] > 0) extent = std::max(extent, place + counts[block]);
    }
    return extent;
}

isthmusRedOp_t opOf(int op) {
    return static_cast<isthmusRedOp_t>(op);
}

std::size_t ranksOf(nb::handle communicator) {
    return static_cast<std::size_t>(nb::cast<Communicator&>(communicator).ranks());
}

}  // namespace isthmus::python
