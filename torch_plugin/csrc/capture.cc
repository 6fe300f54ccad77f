#include "torch_plugin/csrc/capture.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <concepts>

namespace isthmus::glue {
namespace {

/// Later versions of torch ask the device themselves; 2.11 cannot.
template <typename Guard>
concept KnowsCapture = requires(const Guard& guard, const c10::Stream& stream) {
    { guard.isStreamCapturing(stream) } -> std::convertible_to<bool>;
};

/// Two functions of the CUDA driver, found in the library that torch loaded; no headers of CUDA.
/// Names, values and codes: CUDA driver API, "Stream Management" and enum CUresult.
struct Driver {
    using IsCapturing = int (*)(void* stream, int* status);
    using ExchangeMode = int (*)(int* mode);

    IsCapturing isCapturing = nullptr;
    ExchangeMode exchangeMode = nullptr;

    static const Driver& loaded() {
        static const Driver driver = find();
        return driver;
    }

private:
    static Driver find() {
        Driver driver;
        void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr) return driver;
        driver.isCapturing = reinterpret_cast<IsCapturing>(dlsym(library, "cuStreamIsCapturing"));
        driver.exchangeMode =
            reinterpret_cast<ExchangeMode>(dlsym(library, "cuThreadExchangeStreamCaptureMode"));
        return driver;
    }
};

constexpr int kSuccess = 0;              // CUDA_SUCCESS
constexpr int kNotCapturing = 0;         // CU_STREAM_CAPTURE_STATUS_NONE
constexpr int kRelaxed = 2;              // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr int kFirstCaptureError = 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
constexpr int kLastCaptureError = 908;   // CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD

[[maybe_unused]] bool driverSaysCapturing(void* handle) {
    const Driver& driver = Driver::loaded();
    if (driver.isCapturing == nullptr) return false;
    int status = kNotCapturing;
    const int result = driver.isCapturing(handle, &status);
    if (result != kSuccess) return result >= kFirstCaptureError && result <= kLastCaptureError;
    return status != kNotCapturing;
}

template <typename Guard>
bool asks(const Guard& guard, const c10::Stream& stream) {
    if constexpr (KnowsCapture<Guard>) {
        return guard.isStreamCapturing(stream);
    } else if (stream.device_type() == c10::kCUDA) {
        return driverSaysCapturing(guard.getStreamNativeHandle(stream));
    } else {
        return false;
    }
}

}  // namespace

bool isCapturing(const c10::Stream& stream) {
    return asks(c10::impl::VirtualGuardImpl(stream.device_type()), stream);
}

AsideOfCapture::AsideOfCapture(c10::DeviceType type) {
    if (type == c10::kCUDA) mode_ = kRelaxed;
    exchange();
}

AsideOfCapture::~AsideOfCapture() {
    exchange();  // gives the thread's own mode back
}

void AsideOfCapture::exchange() {
    if (mode_ && Driver::loaded().exchangeMode != nullptr) Driver::loaded().exchangeMode(&*mode_);
}

}  // namespace isthmus::glue
