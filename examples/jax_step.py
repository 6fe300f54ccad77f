"""A data-parallel training step in JAX on the CPU: jit computes, isthmus averages.

JAX arrays are given to isthmus as they are. They are immutable, so the result goes to a numpy array.

    JAX_PLATFORMS=cpu isthmus run -n 2 python jax_step.py
"""

import isthmus
import jax
import jax.numpy as jnp
import numpy
from jax.flatten_util import ravel_pytree

BATCH, WIDTH, STEPS, RATE = 64, 32, 20, 0.2


def make_parameters():
    random = numpy.random.default_rng(7)
    return {
        "hidden": random.standard_normal((WIDTH, WIDTH), "float32") / WIDTH**0.5,
        "output": random.standard_normal(WIDTH, "float32") / WIDTH**0.5,
    }


def make_batch(step):
    """The rows of all ranks."""
    inputs = numpy.random.default_rng((11, step)).standard_normal((BATCH, WIDTH), "float32")
    return inputs, numpy.sin(inputs.sum(axis=1))


def loss_of(parameters, inputs, targets):
    answers = jnp.tanh(inputs @ parameters["hidden"]) @ parameters["output"]
    return jnp.mean((answers - targets) ** 2)


def main():
    loss_and_gradient = jax.jit(jax.value_and_grad(loss_of))
    with isthmus.Communicator(name="jax") as comm:
        parameters = make_parameters()
        flat, unravel = ravel_pytree(parameters)
        # One array for the gradient and, behind it, the loss: one call a step.
        summed = isthmus.empty(flat.size + 1, "float32")
        for step in range(STEPS):
            inputs, targets = make_batch(step)
            mine = slice(comm.rank * BATCH // comm.size, (comm.rank + 1) * BATCH // comm.size)
            loss, gradient = loss_and_gradient(parameters, inputs[mine], targets[mine])
            local = jnp.append(ravel_pytree(gradient)[0], loss)
            comm.all_reduce(local, summed, op=isthmus.Op.AVG)
            # A copy: JAX would otherwise look at memory that the next step writes to.
            flat = flat - RATE * jnp.array(summed[:-1], copy=True)
            parameters = unravel(flat)
            if comm.rank == 0:
                print(f"step {step} loss {summed[-1]:.8f}", flush=True)
        everybody = numpy.zeros((comm.size, flat.size), "float32")
        comm.all_gather(flat, everybody)
        assert (everybody == everybody[0]).all(), "the ranks do not have the same parameters"


if __name__ == "__main__":
    main()
