"""isthmus: topology-aware collectives. The torch backend is in isthmus.torch and is found by
``torch.distributed.init_process_group("isthmus")`` without an import."""

__version__ = "0.1.0"
