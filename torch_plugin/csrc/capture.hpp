#pragma once

#include <c10/core/Stream.h>

#include <optional>

namespace isthmus::glue {

/// True while `stream` records a graph: what passes through host memory could not be replayed, and
/// a call that blocks would end the recording with an error that explains nothing.
bool isCapturing(const c10::Stream& stream);

/// While it lives, the driver knows that what this thread does belongs to no graph, so that its
/// waiting does not end the recording of another thread.
class AsideOfCapture {
public:
    explicit AsideOfCapture(c10::DeviceType type);
    ~AsideOfCapture();
    AsideOfCapture(const AsideOfCapture&) = delete;
    AsideOfCapture& operator=(const AsideOfCapture&) = delete;

private:
    void exchange();

    std::optional<int> mode_;  ///< the thread's own meanwhile; none: not of a device that has it
};

}  // namespace isthmus::glue
