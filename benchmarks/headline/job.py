"""The nodes of the headline and the ranks that stay on them while links change."""

import json
import os
import subprocess
import tempfile
from multiprocessing.connection import Listener
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Failed(Exception):
    """The nodes or the ranks did not do what they were told."""


class Nodes:
    """Emulated nodes with slow cards, of the program isthmus."""

    def __init__(self, program, nodes, ranks_of_node, python, package):
        self.program, self.python, self.package = program, python, package
        self.nodes, self.here = nodes, ranks_of_node
        self.name = f"headline-{os.getpid()}"
        self.shape = f"{nodes}x{ranks_of_node}"

    def _run(self, *words, seconds=120):
        ended = subprocess.run([self.program, *words], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=seconds, check=False)
        if ended.returncode != 0:
            raise Failed(f"isthmus {' '.join(words[:2])} ended with {ended.returncode}: {ended.stderr.strip()}")
        return ended.stdout

    def __enter__(self):
        self._run("cluster", "up", self.shape, "--name", self.name)
        return self

    def __exit__(self, *_):
        self._run("cluster", "down", "--name", self.name)

    def change(self, rate):
        self._run("cluster", "rate", rate, "--name", self.name)

    def environment(self):
        paths = [path for path in (self.package, os.environ.get("PYTHONPATH")) if path]
        return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1",
                             "PYTHONDONTWRITEBYTECODE": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}

    def probe(self):
        """The topology as it is measured now."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            self._run("run", "--on", self.name, "--nodes", self.shape, "--", self.program,
                      "topo", "probe", "-o", file.name)
            return json.loads(Path(file.name).read_text())


class Ranks:
    """The processes that train; what is asked of them, all of them do."""

    def __init__(self, nodes, seconds):
        self._nodes, self._seconds = nodes, seconds
        self._folder = tempfile.TemporaryDirectory(prefix="isthmus-headline-")
        path = os.path.join(self._folder.name, "orders")
        self._listener = Listener(path, family="AF_UNIX")
        self._process = subprocess.Popen(
            [nodes.program, "run", "--on", nodes.name, "--nodes", nodes.shape, "--limit", str(seconds),
             nodes.python, str(HERE / "rank.py"), path],
            stdin=subprocess.DEVNULL, env=nodes.environment())
        self._listener._listener._socket.settimeout(180)  # noqa: SLF001 - Listener has no limit of its own
        try:
            self._orders = self._listener.accept()
        except OSError as late:
            self.__exit__()
            raise Failed("the ranks did not start within 180 s") from late

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def ask(self, what, seconds=240, **arguments):
        try:
            self._orders.send((what, arguments))
            if not self._orders.poll(seconds):
                raise Failed(f"the ranks did not answer {what} within {seconds} s")
            return self._orders.recv()
        except (EOFError, OSError) as gone:
            raise Failed(f"the ranks ended during {what}") from gone

    def end(self):
        """Lets them go in order."""
        self._orders.send(None)
        if self._process.wait(60) != 0:
            raise Failed(f"the ranks ended with {self._process.returncode}")
