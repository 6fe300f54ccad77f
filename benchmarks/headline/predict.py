"""What leaves each node in a step of a program on isthmus, by formula (two levels: inside a node first)."""

from model import BYTES, CONTEXT, LAYERS, PARAMETERS, WIDTH

ELEMENT = 4  # float32
# Of a block, what tensor parallelism copies: two norms, and the biases that are added once.
COPIED = LAYERS * (2 * 2 * WIDTH + 2 * WIDTH) + 2 * BYTES * WIDTH + CONTEXT * WIDTH + 2 * WIDTH


def sent_per_node(name, nodes, ranks_of_node, placed):
    """Payload bytes; None for programs of another library."""
    if name == "placed":
        told = {each["node"]: each["all"]["egress"] for each in placed["placement"]["predicted"]["nodes"]}
        return [told[node["name"]] for node in placed["placement"]["topology"]["nodes"]]
    kind, backend = name.split("/")
    if backend != "isthmus":
        return None
    whole = ELEMENT * PARAMETERS
    moved = (nodes - 1) * whole / nodes  # of a gather, and of a sum of which every node keeps its part
    if kind == "fsdp2":
        return [3 * moved] * nodes
    if kind == "tpdp":
        split = ELEMENT * (PARAMETERS - COPIED)
        return [2 * (nodes - 1) / nodes * (split + ranks_of_node * ELEMENT * COPIED)] * nodes
    return [2 * moved] * nodes
