"""What every rank needs, imported once by the server that ranks are forked from."""

import torch.distributed._functional_collectives  # noqa: F401
import torch.distributed.device_mesh  # noqa: F401
import torch.distributed.fsdp  # noqa: F401
import torch.distributed.pipelining  # noqa: F401
import torch.distributed.tensor.parallel  # noqa: F401
import torch.nn.parallel  # noqa: F401
import torch.optim  # noqa: F401
