"""The programs that are compared: how each is built, started and read. Times are microseconds."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Half round trips of a flag between two threads: shared cache below, two caches above.
FAR_NANOSECONDS = 150
# More than a scheduler's wake-up: the machine had other work.
BUSY_NANOSECONDS = 1500


class Unavailable(Exception):
    """A side that cannot run here, and why."""


def iterations_for(size, layout=None):
    """Enough for a median, few enough that a row stays within a second or two."""
    if layout is not None and not layout.is_here:
        return 300 if size <= 1 << 16 else 40 if size <= 1 << 20 else 5
    if size <= 1 << 12:
        return 10000  # the scheduler needs some ten milliseconds to spread the ranks
    if size <= 1 << 16:
        return 1000
    if size <= 1 << 20:
        return 200
    return 20 if size <= 1 << 24 else 8


class Sides:
    def __init__(self, program=None, build=None, limit=120):
        self.build = build or os.path.join(ROOT, "build")
        self.program = os.path.abspath(program or self._program())
        self.limit = limit
        self._temporary = tempfile.TemporaryDirectory(prefix="isthmus-peers-")
        self.folder = self._temporary.name
        self._built = {}

    def _program(self):
        local = os.path.join(self.build, "tools", "cli", "isthmus")
        found = local if os.path.exists(local) else shutil.which("isthmus")
        if not found:
            raise Unavailable(f"no program isthmus: neither {local} nor on PATH")
        return found

    def run(self, command, limit=None):
        """What it prints. A launcher that does not end is ended with all that it started."""
        limit = limit or self.limit
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        try:
            output, errors = process.communicate(timeout=limit)
        except BaseException as reason:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
            if isinstance(reason, subprocess.TimeoutExpired):
                raise Unavailable(f"{' '.join(command[:6])} ... did not end in {limit} s") from None
            raise
        if process.returncode != 0:
            tail = (errors or output).strip().splitlines()[-3:]
            raise Unavailable(f"{' '.join(command[:6])} ... ended with {process.returncode}: {' | '.join(tail)}")
        return output

    def compiled(self, name, compiler, *flags):
        """Builds one file of this folder, once for each compiler."""
        if (name, compiler) not in self._built:
            if not shutil.which(compiler):
                raise Unavailable(f"{compiler} is not installed")
            target = os.path.join(self.folder, f"{os.path.splitext(name)[0]}-{compiler}")
            self.run([compiler, *flags, "-O2", os.path.join(HERE, name), "-o", target])
            self._built[name, compiler] = target
        return self._built[name, compiler]

    def _own(self, name):
        built = os.path.join(self.build, "benchmarks", "peers", name)
        return built if os.path.exists(built) else self.compiled(name + ".cc", "c++", "-std=c++20", "-pthread")

    def probe(self):
        """Nanoseconds of a flag's half round trip: which placement the processors have now."""
        return min(float(self.run([self._own("placement_probe")])) for _ in range(3))

    def bounds(self, ranks, size):
        """A meeting of processes and a sum in memory that all map, without a library, at this moment."""
        return json.loads(self.run([self._own("bounds"), str(ranks), str(size)]))

    def isthmus(self, collective, size, layout, memory="arena", element="float"):
        """Through the C API, of the slowest rank's times; `mean_us` is elapsed time by calls. Over nodes also the
        time that the bytes of the busiest card need."""
        count = iterations_for(size, layout)
        kinds = [f"--{memory}", "-d", element]
        if collective == "uneven_all_to_all":
            collective, kinds = "all_to_all", [*kinds, "--uneven"]
        where = ["--ranks", str(layout.ranks)] if layout.is_here else \
                ["--wire", "--nodes", layout.shape, "--rate", layout.rate]
        document = self._bench(collective, size, [*kinds, *where], count)
        row = document["results"][0]
        return {**row["out_of_place_per_iter"], "mean_us": row["out_of_place"]["time"],
                "bound_us": row["out_of_place"].get("bound_time")}

    def over_nodes(self, collective, size, nodes, rate):
        """One result with its wire fields, over emulated nodes; its better half."""
        arguments = ["--wire", "--nodes", nodes, "--rate", rate]
        document = self._bench(collective, size, arguments, iterations_for(size))
        row = document["results"][0]
        return max((row["out_of_place"], row["in_place"]), key=lambda half: half["of_bound"] or 0)

    def _bench(self, collective, size, arguments, count):
        command = [self.program, "bench", collective, "-b", str(size), "-e", str(size), "-n", str(count)]
        command += ["-w", str(max(2, count // 10)), "-c", "0", "-I", "--format", "json", *arguments]
        return json.loads(self.run(command))

    def torch(self, collectives, sizes, ranks, nodes=None, rate=None, iterations=10):
        """gloo and isthmus in turn in the same processes: {(collective, bytes): {gloo_us, isthmus_us, shared_us}}."""
        python = self._python_with_torch()
        where = ["-n", str(ranks)] if nodes is None else ["--nodes", nodes, "--rate", rate]
        command = [self.program, "run", *where, "--no-prefix", "--", python, os.path.join(HERE, "torch_peer.py")]
        command += ["--collectives", ",".join(collectives), "--bytes", ",".join(map(str, sizes))]
        command += ["--iterations", str(iterations)]
        lines = self.run(command, 300).splitlines()
        results = [json.loads(line) for line in lines if line.startswith("{")]
        return {(result["collective"], result["bytes"]): result for result in results}

    def _python_with_torch(self):
        beside = os.path.join(ROOT, ".venv", "bin", "python")
        built = os.path.join(self.build, "torch_plugin")
        if glob.glob(os.path.join(built, "isthmus", "_torch_*.so")):
            os.environ["PYTHONPATH"] = os.pathsep.join([built, os.environ.get("PYTHONPATH", "")])
        for python in (sys.executable, beside):
            if os.path.exists(python):
                test = [python, "-c", "import torch, isthmus.torch"]
                if subprocess.run(test, capture_output=True, timeout=60).returncode == 0:
                    return python
        raise Unavailable("no Python here has both torch and isthmus")

    def built(self, name):
        program = os.path.join(self.build, "benchmarks", "peers", name)
        if not os.path.exists(program):
            raise Unavailable(f"{program} is not built")
        return program

    def as_ranks(self, name, words, layout, is_bound=False):
        """Of a program of this folder: the JSON lines that it prints. Bound: rank r stays on processor r, or a busy
        machine may leave two ranks on one."""
        where = ["-n", str(layout.ranks)] if layout.is_here else ["--nodes", layout.shape, "--rate", layout.rate]
        binding = ["sh", "-c", 'exec taskset -c "$RANK" "$@"', "bound"] if is_bound else []
        command = [self.program, "run", *where, "--no-prefix", "--", *binding, self.built(name), *map(str, words)]
        return [json.loads(line) for line in self.run(command).splitlines() if line.startswith("{")]

    def in_one_process(self, name, *words):
        return json.loads(self.run([self.built(name), *map(str, words)]))


def placement_of(nanoseconds):
    if nanoseconds > BUSY_NANOSECONDS:
        return "busy"
    return "far" if nanoseconds > FAR_NANOSECONDS else "near"
