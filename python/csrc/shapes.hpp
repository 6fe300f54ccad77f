#pragma once

#include <optional>
#include <vector>

#include "python/csrc/array.hpp"

namespace isthmus::python {

/// What the C call gets of two arrays, which may have moved on by then.
struct Buffers {
    const void* send = nullptr;
    void* receive = nullptr;
    std::size_t sendElements = 0;
    std::size_t receiveElements = 0;
    isthmusDataType_t type = isthmusUint8;
};

/// The arrays of one call, compared with each other: C cannot see their sizes.
struct Pair {
    /// Without `receive` (None) the call is in place.
    static Pair of(const char* call, nb::handle send, nb::handle receive);
    /// Both must be given; they may be the places in one array that the C header names.
    static Pair ofTwo(const char* call, nb::handle send, nb::handle receive);
    static Pair reading(const char* call, nb::handle send);
    static Pair writing(const char* call, nb::handle receive);

    void expect(const char* which, const Array& array, std::size_t elements) const;
    /// At least so many, to which blocks reach.
    void expectRoom(const char* which, const Array& array, std::size_t elements) const;
    Buffers buffers() const;
    std::vector<Array> take();

    const char* call = "";
    Array send;
    Array receive;
};

/// Displacements, where there are any.
using PerhapsCounts = std::optional<std::vector<std::size_t>>;
const std::size_t* dataOf(const PerhapsCounts& places);

/// The elements an array must have at least, so that every block lies inside. One block for each of
/// `blocks` ranks, or whatever `whose` says.
std::size_t extentOf(const char* call, const std::vector<std::size_t>& counts,
                     const PerhapsCounts& places, std::size_t blocks, const char* whose = "ranks");

/// An operation of the header, or one of premul_sum() or reduction().
isthmusRedOp_t opOf(int op);

std::size_t ranksOf(nb::handle communicator);

}  // namespace isthmus::python
