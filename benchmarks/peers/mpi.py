"""MPI libraries as peers, each with the settings that suit it best here. One start measures all sizes."""
import json
import os
import shutil

from sides import Unavailable, iterations_for

COMPILERS = {"openmpi": ("mpicc.openmpi", "mpicc"), "han": ("mpicc.openmpi", "mpicc"), "mpich": ("mpicc.mpich",)}
LAUNCHERS = {"openmpi": ("mpirun.openmpi", "mpirun"), "han": ("mpirun.openmpi", "mpirun"), "mpich": ("mpirun.mpich",)}


def first_installed(names):
    for name in names:
        if shutil.which(name):
            return name
    raise Unavailable(f"{names[0]} is not installed")


def openmpi(launcher, layout, nodes, has_han):
    """Shared memory inside a node, TCP between nodes; yields where ranks outnumber processors, or it spins through
    its time slices."""
    command = [launcher, "--allow-run-as-root", "--bind-to", "none", "--mca", "pml", "ob1"]
    if nodes is not None:
        command += ["--mca", "plm_rsh_agent", nodes.agent, "--mca", "btl", "vader,tcp,self"]
        command += ["--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"]
        command += ["-host", nodes.slots, "--mca", "mpi_yield_when_idle", "1"]
    elif layout.ranks > len(os.sched_getaffinity(0)):
        command.append("--oversubscribe")
    if has_han:
        command += ["--mca", "coll_han_priority", "90"]
    return command


def mpich(launcher, _layout, nodes):
    """It always spins: where ranks outnumber processors its small calls cost time slices, whatever is set."""
    command = [launcher]
    if nodes is not None:
        command += ["-launcher", "ssh", "-launcher-exec", nodes.agent, "-iface", "eth0", "-hosts", nodes.slots]
    return command


def as_ranks(sides, name, source, words, layout, nodes, is_bound=False):
    """{bytes: row} of a program of this folder that prints a JSON line for each size."""
    program = sides.compiled(source, first_installed(COMPILERS[name]), "-std=gnu11")
    launcher = first_installed(LAUNCHERS[name])
    command = mpich(launcher, layout, nodes) if name == "mpich" else openmpi(launcher, layout, nodes, name == "han")
    command = (nodes.enter if nodes is not None else []) + command + ["-n", str(layout.ranks)]
    command += ["sh", "-c", 'exec taskset -c "$OMPI_COMM_WORLD_RANK" "$@"', "bound"] if is_bound else []
    command += [program, *words]
    lines = sides.run(command).splitlines()
    return {row["bytes"]: row for row in (json.loads(line) for line in lines if line.startswith("{"))}


def measure(sides, name, collective, sizes, layout, nodes):
    """{bytes: {p50_us, p99_us, mean_us}} of the slowest rank of each iteration."""
    words = [collective]
    for size in sizes:
        count = iterations_for(size, layout)
        words.append(f"{size}:{max(2, count // 10)}:{count}")
    return as_ranks(sides, name, "mpi_peer.c", words, layout, nodes)
