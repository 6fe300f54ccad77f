"""The Python examples without torch give what a run without isthmus gives.

usage: check_python.py BUILD ISTHMUS"""

import os
import sys
from pathlib import Path

import programs
from programs import needs, numbers_after


def numpy_regression(start):
    needs("numpy")
    import numpy
    import numpy_regression as example

    inputs, targets = example.make_data()
    weights, residual, *_ = numpy.linalg.lstsq(inputs, targets, rcond=None)
    for ranks in (1, 4):
        output = start.ranks(ranks, "numpy_regression.py")
        assert f"{ranks} ranks, loss" in output, output
        loss, weight = numbers_after("loss", output)[-1], numbers_after("weight", output)[-1]
        # What descent must find, up to the twelve digits that are printed.
        assert abs(loss - residual[0] / example.ROWS) < 1e-10, (loss, residual)
        assert abs(weight - weights[0]) < 1e-9, (weight, weights[0])


def jax_step(start):
    needs("numpy", "jax")
    import jax
    import jax_step as example

    parameters, losses = example.make_parameters(), []
    loss_and_gradient = jax.jit(jax.value_and_grad(example.loss_of))
    for step in range(example.STEPS):
        loss, gradient = loss_and_gradient(parameters, *example.make_batch(step))
        losses.append(float(loss))
        parameters = jax.tree.map(lambda p, g: p - example.RATE * g, parameters, gradient)
    assert losses[-1] < 0.7 * losses[0], losses
    found = numbers_after("loss", start.ranks(2, "jax_step.py"))
    assert len(found) == example.STEPS, found
    for step, (ours, alone) in enumerate(zip(found, losses)):
        assert abs(ours - alone) <= 1e-5 * alone, (step, ours, alone)


def mpi_and_isthmus(start):
    needs("numpy", "mpi4py")
    assert "4 ranks: MPI and isthmus agree" in start.mpirun(4, "mpi_and_isthmus.py")


if __name__ == "__main__":
    build, isthmus = sys.argv[1:]
    # The package and the examples, whose data and functions the expected values are made of.
    sys.path[:0] = [str(Path(build) / "torch_plugin"), str(programs.EXAMPLES)]
    sys.dont_write_bytecode = True
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.exit(programs.run_cases([numpy_regression, jax_step, mpi_and_isthmus], build, isthmus))
