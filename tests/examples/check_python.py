"""The Python examples without torch give what a run without isthmus gives.

usage: check_python.py BUILD ISTHMUS"""

import os
import re
import shutil
import sys
from pathlib import Path

import programs
from programs import Skip, needs, numbers_after


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


# A program that nothing but its launcher tells who it is; it dies at the rank of its argument.
HELLO = """
import os, signal, sys, numpy, isthmus
comm = isthmus.Communicator(name="hello")
total = numpy.empty(1000)
comm.all_reduce(numpy.full(1000, comm.rank + 1.0), total)
assert (total == comm.size * (comm.size + 1) / 2).all(), total
sys.stdout.write(f"hello {comm.rank} of {comm.size}\\n")
sys.stdout.flush()
if comm.rank == int(sys.argv[1]):
    os.kill(os.getpid(), signal.SIGKILL)
comm.barrier()
comm.close()
"""


def launched_by(start, *command):
    """U8: ranks of one program, of two, and one that is killed."""
    needs("numpy")
    if shutil.which(command[0]) is None:
        raise Skip(f"{command[0]} is missing")
    hello = Path(start.folder) / "hello.py"
    hello.write_text(HELLO)
    other = Path(start.folder) / "other.py"
    other.write_text(HELLO.replace("hello {", "other {"))
    one = [sys.executable, hello, -1]
    output = start.run(*command, "-n", 3, *one)
    assert sorted(re.findall("hello . of .", output)) == [f"hello {rank} of 3" for rank in range(3)], output
    output = start.run(*command, "-n", 1, *one, ":", "-n", 2, sys.executable, other, -1)
    found = sorted(re.findall("(?:hello|other) . of .", output))
    assert found == ["hello 0 of 3", "other 1 of 3", "other 2 of 3"], output
    output = start.run(*command, "-n", 3, sys.executable, hello, 1, code=None)
    assert "hello 1 of 3" in output, output


def launched_by_open_mpi(start):
    launched_by(start, "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe")


def launched_by_mpich(start):
    launched_by(start, "mpiexec.mpich")


if __name__ == "__main__":
    build, isthmus = sys.argv[1:]
    # The package and the examples, whose data and functions the expected values are made of.
    sys.path[:0] = [str(Path(build) / "torch_plugin"), str(programs.EXAMPLES)]
    sys.dont_write_bytecode = True
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.exit(programs.run_cases([numpy_regression, jax_step, mpi_and_isthmus, launched_by_open_mpi,
                                 launched_by_mpich], build, isthmus))
