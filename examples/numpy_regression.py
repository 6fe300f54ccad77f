"""Linear regression in numpy, its data spread over the ranks.

Every rank computes the gradient of its own rows; the average over the ranks is the gradient of all
rows, so the weights are those of a run on one rank.

    isthmus run -n 4 python numpy_regression.py
    isthmus run --nodes 2x2 --rate 1gbit python numpy_regression.py    # as if on two machines
"""

import isthmus
import numpy

ROWS, COLUMNS, STEPS, RATE = 960, 64, 300, 0.1


def make_data():
    """All rows; the same on every rank."""
    random = numpy.random.default_rng(1)
    inputs = random.standard_normal((ROWS, COLUMNS))
    targets = inputs @ random.standard_normal(COLUMNS) + 0.1 * random.standard_normal(ROWS)
    return inputs, targets


def main():
    with isthmus.Communicator(name="regression") as comm:
        inputs, targets = (rows[comm.rank :: comm.size] for rows in make_data())
        assert ROWS % comm.size == 0, "the average of averages wants the same number of rows everywhere"
        weights = numpy.zeros(COLUMNS)
        # Memory that the ranks of a node share: the sum is made in place, without copies.
        gradient = isthmus.empty(COLUMNS, "float64")
        loss = numpy.zeros(1)
        for step in range(STEPS):
            error = inputs @ weights - targets
            gradient[:] = 2 * inputs.T @ error / len(targets)
            loss[:] = error @ error / len(targets)
            averaging = comm.all_reduce(gradient, op=isthmus.Op.AVG, wait=False)
            comm.all_reduce(loss, op=isthmus.Op.AVG)  # meanwhile
            averaging.wait()
            weights -= RATE * gradient
            if comm.rank == 0 and step % 100 == 0:
                print(f"step {step} loss {loss[0]:.6f}", flush=True)
        # Rank 0 could have gone astray alone: it takes nobody's word for it.
        everybody = numpy.zeros((comm.size, COLUMNS))
        comm.all_gather(weights, everybody)
        assert (everybody == weights).all(), "the ranks do not have the same weights"
        if comm.rank == 0:
            print(f"{comm.size} ranks, loss {loss[0]:.12f}, first weight {weights[0]:.12f}")


if __name__ == "__main__":
    main()
