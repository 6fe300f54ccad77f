"""From a torch module to a model that `isthmus place` reads: what each layer computes, keeps and hands on."""

import copy
import fnmatch

_CONTAINERS = ("ModuleList", "ModuleDict", "Sequential")


def _without_data(model):
    """The model with parameters and buffers on the meta device; the given one is not touched."""
    import torch

    memo = {}
    for weight in model.parameters():
        memo[id(weight)] = torch.nn.Parameter(
            torch.empty_like(weight, device="meta"), requires_grad=weight.requires_grad
        )
    for buffer in model.buffers():
        memo[id(buffer)] = torch.empty_like(buffer, device="meta")
    return copy.deepcopy(model, memo)


def _expanded(prefix, module):
    """A container's members, or the module itself."""
    if type(module).__name__ not in _CONTAINERS:
        return {prefix: module}
    return {f"{prefix}.{name}" if prefix else name: each for name, each in module.named_children()}


def _chain(model, chain):
    """The layers by name: members of the named container or containers, or all children."""
    if chain is None:
        found = {}
        for name, child in model.named_children():
            found |= _expanded(name, child)
        return found or {"model": model}
    found = {}
    for name in [chain] if isinstance(chain, str) else chain:
        found |= _expanded(name, model.get_submodule(name))
    return found


def _bytes(value):
    """Of all tensors in nested tuples, lists and dictionaries."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, dict):
        value = value.values()
    return sum(map(_bytes, value)) if isinstance(value, (tuple, list, type({}.values()))) else 0


class _Layer:
    def __init__(self, name, module):
        self.name, self.module = name, module
        self.parameters = self.frozen = self.shared = self.split = 0
        self.tied_to, self.rows = None, 0
        self.flops, self.runs = 0, 0
        self.kept = {True: 0, False: 0}  # inside what is split, and outside
        self.input_bytes = self.output_bytes = 0


class _Tracer:
    """Follows one forward pass. What happens between two layers belongs to the one before."""

    def __init__(self, model, layers, split):
        self.model, self.split = model, split
        self.layers = [_Layer(name, module) for name, module in layers.items()]
        self.at, self.is_inside, self.seen = 0, False, {}
        self._own_parameters()

    def _own_parameters(self):
        owner, owners = {}, {}
        for layer in self.layers:
            for name, _ in layer.module.named_parameters():
                owners[f"{layer.name}.{name}" if layer.name != "model" else name] = layer
        before = self.layers[0]
        for name, weight in self.model.named_parameters(remove_duplicate=False):
            layer = before = owners.get(name, before)
            count = weight.numel()
            if id(weight) in owner and owner[id(weight)] is not layer:
                layer.tied_to = owner[id(weight)].name
                layer.shared += count
                continue
            owner[id(weight)] = layer
            layer.parameters += count
            layer.frozen += 0 if weight.requires_grad else count
            self.seen[weight.untyped_storage()._cdata] = weight
        for layer in self.layers:
            for name, kind, part in self._parts(layer):
                layer.rows += kind == "rows"
                for weight_name, weight in part.named_parameters(recurse=False):
                    whole = kind == "rows" and weight_name == "bias"
                    layer.split += 0 if whole else weight.numel()

    def _parts(self, layer):
        for name, part in layer.module.named_modules():
            for pattern, kind in self.split.items():
                if kind not in ("columns", "rows"):
                    raise ValueError(f"isthmus: {pattern!r} is split by columns or rows, not {kind!r}")
                if fnmatch.fnmatch(name, pattern):
                    yield name, kind, part

    def hook(self, counter):
        handles = []
        for at, layer in enumerate(self.layers):
            handles.append(layer.module.register_forward_pre_hook(self._enter(at, counter), with_kwargs=True))
            handles.append(layer.module.register_forward_hook(self._leave(layer)))
            for _, kind, part in self._parts(layer):
                handles.append(part.register_forward_hook(self._pass(kind == "columns")))
        return handles

    def _enter(self, at, counter):
        def hook(_module, given, named):
            self.count(counter)
            self.at = at
            self.layers[at].runs += 1
            self.layers[at].input_bytes += _bytes(given) + _bytes(named)

        return hook

    def _leave(self, layer):
        def hook(_module, _given, output):
            layer.output_bytes += _bytes(output)

        return hook

    def _pass(self, is_inside):
        def hook(_module, _given, _output):
            self.is_inside = is_inside

        return hook

    def count(self, counter):
        """Gives what was computed since the last time to the layer that runs."""
        total = counter.get_total_flops()
        self.layers[self.at].flops += total - getattr(self, "counted", 0)
        self.counted = total

    def keep(self, tensor):
        """A tensor that backward wants; views of one memory count once."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self.seen:
            self.seen[storage._cdata] = tensor  # kept, so that no other takes its place
            self.layers[self.at].kept[self.is_inside] += storage.nbytes()
        return tensor


def _document(layer, is_split):
    document = {"name": layer.name, "type": type(layer.module).__name__, "parameters": layer.parameters,
                "forward_flops": layer.flops, "replicated_activation_bytes": sum(layer.kept.values()),
                "input_bytes": layer.input_bytes, "boundary_bytes": layer.output_bytes,
                "replicated_parameters": layer.parameters}
    if is_split and layer.rows:
        document |= {"replicated_activation_bytes": layer.kept[False],
                     "split_activation_bytes": layer.kept[True],
                     "replicated_parameters": layer.parameters - layer.split,
                     "tensor_forward": layer.rows, "tensor_backward": layer.rows,
                     "reduction_bytes": layer.output_bytes}
    if layer.frozen:
        document["frozen_parameters"] = layer.frozen
    if layer.tied_to:
        document |= {"tied_to": layer.tied_to, "tied_parameters": layer.shared}
    return document


def trace(model, *inputs, chain=None, split=None, heads=None, name=None, sequence=1, **named):
    """The model as `isthmus place --model` reads it: a dictionary. One forward pass on the meta device,
    with inputs of one sample, of which only the shapes matter; no parameter is read, none is changed.

    ``chain``: the layers, in the order in which they run: the name of a container in the model, or names of
    modules and containers; all children where it is left out. What runs between two layers counts for the
    one before. ``split``: patterns of names inside a layer to "columns" or "rows", as tensor parallelism
    splits those modules; with ``heads``, which tensor degrees divide. ``sequence``: tokens of the sample.
    Backward counts as twice forward. ValueError: more than one sample, or a layer that does not run once."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    def on_meta(value):
        return value.to("meta") if isinstance(value, torch.Tensor) else value

    inputs = [on_meta(value) for value in inputs]
    named = {key: on_meta(value) for key, value in named.items()}
    for value in inputs:
        if isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] != 1:
            raise ValueError(f"isthmus: an input has {value.shape[0]} samples; a model's numbers are those of one")
    model = _without_data(model)
    tracer = _Tracer(model, _chain(model, chain), split or {})
    with FlopCounterMode(display=False) as counter:
        handles = tracer.hook(counter)
        with torch.autograd.graph.saved_tensors_hooks(tracer.keep, lambda tensor: tensor), torch.enable_grad():
            model(*inputs, **named)
        tracer.count(counter)
    for handle in handles:
        handle.remove()
    for layer in tracer.layers:
        if layer.runs != 1:
            raise ValueError(f"isthmus: layer {layer.name} ran {layer.runs} times; a chain's run once each")
    sizes = [weight.element_size() for weight in model.parameters() if weight.is_floating_point()]
    return {"isthmus_model": 1, "name": name or type(model).__name__, "sequence": sequence,
            "element_bytes": max(sizes, default=4), "heads": (heads or 1) if split else 1,
            "layers": [_document(layer, bool(split)) for layer in tracer.layers]}
