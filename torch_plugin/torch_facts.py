"""Prints, one a line, what the build must know of this interpreter's torch: minor version as
2_15, include folder, library folder, C++11 ABI flag. Fails when there is no torch."""

import os

# Our own entry point may be installed already; it must not run while its library is being built.
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch  # noqa: E402

major, minor = torch.__version__.split(".")[:2]
folder = os.path.dirname(torch.__file__)
print(f"{major}_{minor}")
print(os.path.join(folder, "include"))
print(os.path.join(folder, "lib"))
print(int(torch.compiled_with_cxx11_abi()))
