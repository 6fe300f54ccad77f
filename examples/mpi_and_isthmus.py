"""MPI and isthmus in one program: MPI starts the ranks and lets them find each other.

    mpirun -n 4 python mpi_and_isthmus.py
"""

import isthmus
import numpy
from mpi4py import MPI

COUNT = 100_000


def main():
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()

    # Two ways to join: an id that one rank makes and MPI spreads, or MPI's own all-gather.
    identity = world.bcast(isthmus.unique_id() if rank == 0 else None)
    by_id = isthmus.Communicator.from_unique_id(identity, rank, size, name="by id")
    by_mpi = isthmus.Communicator.from_all_gather(world.allgather, rank, size, name="by mpi")

    # Both kinds of calls in turn, on the same arrays. The numbers are whole, so the sums are exact.
    for turn in range(10):
        mine = numpy.arange(COUNT) % 97 * (rank + 1.0) + turn
        of_isthmus, of_mpi = numpy.empty(COUNT), numpy.empty(COUNT)
        started = by_id.all_reduce(mine, of_isthmus, wait=False)
        world.Allreduce(mine, of_mpi)  # while the other is in flight
        started.wait()
        expected = numpy.arange(COUNT) % 97 * (size * (size + 1) / 2) + turn * size
        assert (of_isthmus == expected).all() and (of_mpi == expected).all()

        right, left = (rank + 1) % size, (rank - 1) % size
        sent = by_mpi.send(mine, right, wait=False)
        by_mpi.recv(of_isthmus, left)
        sent.wait()
        world.Sendrecv(mine, right, recvbuf=of_mpi, source=left)
        assert (of_isthmus == of_mpi).all()

    by_mpi.close()
    by_id.close()
    if rank == 0:
        print(f"{size} ranks: MPI and isthmus agree")


if __name__ == "__main__":
    main()
