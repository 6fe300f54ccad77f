#pragma once

#include <isthmus/isthmus.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "torch_plugin/csrc/staging.hpp"
#include "torch_plugin/csrc/torch_compat.hpp"

namespace isthmus::glue {

/// Everything about one call that outlives the function that made it.
struct Call {
    const char* title;  ///< for the profiler: "isthmus:all_reduce"
    c10d::OpType type = c10d::OpType::UNKNOWN;
    std::vector<at::Tensor> inputs;
    std::vector<at::Tensor> outputs;
    /// Starts the call in the library. Holds what must stay alive until the call is done.
    std::function<isthmusResult_t(isthmusComm_t, const isthmusCallOptions_t*, isthmusRequest_t*)>
        start;
    std::function<void()>
        writeBack;  ///< after success: strided results to their place; may be empty
    std::chrono::milliseconds timeout{0};
    std::shared_ptr<int> source;  ///< receives only: the rank that the message came from
    bool runsInCaller = false;    ///< the caller waits at once: no request, no other thread
    std::uint64_t sequence = 0;
    bool isDeterministic = false;
    bool roundsOnce = false;
    bool mayMixHost = false;  ///< some of the tensors may be in host memory, others on a device
    /// The way of its tensors through host memory; null while all of them are there anyway.
    std::shared_ptr<Staging> staging;

    /// The title without "isthmus:".
    const char* operation() const { return title + sizeof("isthmus:") - 1; }

    /// Throws unless `tensor` can take part: strided layout, in host memory or on the device of the
    /// call's other tensors, and no graph is being recorded there.
    void admit(const at::Tensor& tensor);
    void admit(const std::vector<at::Tensor>& tensors);
    /// The same for a call without tensors that is ordered on `device`.
    void admitDevice(c10::Device device);

private:
    bool hasHostTensor_ = false;
};

}  // namespace isthmus::glue
