"""How programs begin and end: imports, Ctrl-C, exits with calls in flight, forks."""

import ast
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "torch_plugin" / "isthmus"
STEP_SECONDS = 20

_cases = []


def case(body):
    _cases.append(body)
    return body


def start(script, environment, **more):
    return subprocess.Popen([sys.executable, "-c", script], env=environment | more, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process, limit=STEP_SECONDS):
    """Exit code, output, errors; never waits for ever."""
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        raise AssertionError(f"still ran after {limit} s: {output} {errors}") from None
    return process.returncode, output, errors


def interrupted(script, environment, **more):
    """Sends SIGINT once the script has printed "waiting"; seconds until it ended, and what it said."""
    process = start(script, environment, **more)
    line = process.stdout.readline()
    assert line == "waiting\n", (line, ended(process))
    time.sleep(0.3)  # it prints before it waits
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    code, output, errors = ended(process)
    assert (code, output) == (0, "interrupted\n"), (code, output, errors)
    return time.monotonic() - began


@case
def the_import_is_light(environment):
    code, output, errors = ended(start(
        "import sys, isthmus; isthmus.version(); isthmus.Communicator\n"
        "print([m for m in ('torch', 'numpy', 'jax', 'mpi4py') if m in sys.modules])", environment))
    assert (code, output) == (0, "[]\n"), (output, errors)


@case
def ctrl_c_while_a_call_blocks(environment):
    seconds = interrupted(
        "import isthmus\n"
        "comm = isthmus.Communicator(timeout=60)\n"
        "print('waiting', flush=True)\n"
        "try: comm.recv(bytearray(8), 0)\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n", environment)
    # Its receive never ends, so the exit gives it its second and takes the memory back.
    assert seconds < 10, seconds


@case
def ctrl_c_while_the_others_are_missing(environment):
    seconds = interrupted(
        "import isthmus, os\n"
        "print('waiting', flush=True)\n"
        "try: isthmus.Communicator.from_unique_id(isthmus.unique_id(), 0, 2, timeout=60)\n"
        "except KeyboardInterrupt: print('interrupted', flush=True); os._exit(0)\n", environment)
    assert seconds < 5, seconds


@case
def a_handler_of_the_program_is_called(environment):
    process = start(
        "import isthmus, signal, sys\n"
        "comm = isthmus.Communicator(timeout=60)\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))\n"
        "print('waiting', flush=True)\n"
        "comm.recv(bytearray(8), 0)\n", environment)
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGUSR1)
    assert ended(process)[0] == 7


@case
def an_exit_with_calls_in_flight(environment):
    began = time.monotonic()
    code, output, errors = ended(start(
        "import isthmus\n"
        "comm = isthmus.Communicator(timeout=60)\n"
        "request = comm.recv(bytearray(8), 0, wait=False)\n"
        "other = isthmus.Communicator(timeout=60)\n"
        "other.recv(bytearray(8), 0, wait=False)\n", environment))
    assert (code, output, errors) == (0, "", ""), (code, output, errors)
    assert time.monotonic() - began < 15


@case
def missing_peers_are_named(environment):
    code, output, errors = ended(start(
        "import isthmus\n"
        "try: isthmus.Communicator.from_unique_id(isthmus.unique_id(), 0, 3, timeout=0.5)\n"
        "except isthmus.Error as error: print(error.code.name, error)\n", environment))
    assert code == 0 and output.startswith("TIMEOUT"), (output, errors)
    assert "1" in output and "2" in output, output


@case
def forked_children_are_told(environment):
    code, output, errors = ended(start(
        "import isthmus, os\n"
        "comm = isthmus.Communicator()\n"
        "comm.all_reduce(bytearray(4))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try: comm.all_reduce(bytearray(4))\n"
        "    except isthmus.Error as error: os._exit(5 if 'fork' in str(error) else 6)\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "comm.all_reduce(bytearray(4)); comm.close()\n", environment))
    assert (code, output) == (0, "5\n"), (code, output, errors)


@case
def forked_children_end_by_themselves(environment):
    """The parent's threads are not there; what the child inherited it neither waits for nor frees."""
    code, output, errors = ended(start(
        "import isthmus, os, sys, threading\n"
        "comm = isthmus.Communicator()\n"
        "called = threading.Event()\n"
        "request = comm.barrier(wait=False)\n"
        "request.add_done_callback(lambda _: called.set())\n"
        "assert called.wait(5)\n"
        "pending = comm.recv(bytearray(8), 0, wait=False)\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)\n"
        "pending.cancel(); comm.close()\n", environment))
    assert (code, output) == (0, "3\n"), (code, output, errors)


@case
def arguments_that_are_wrong_are_refused(environment):
    """Of every method, and by TypeError or isthmus.Error only."""
    code, output, errors = ended(subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("wrong_arguments.py"))], env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE), 60)
    assert code == 0, (code, output[-500:], errors[-3000:])
    made, refused = (int(word) for word in output.split() if word.isdigit())
    assert made > 5000 and refused > made / 2, output


@case
def the_stub_names_what_the_module_has(environment):
    """Every public class, method and argument, in both directions."""
    code, output, errors = ended(start(
        "import enum, isthmus, re\n"
        "from isthmus import _communicator as module\n"
        "def names(signature):\n"
        "    inside = signature[signature.index('(') + 1 : signature.rindex(')')]\n"
        "    return [part for part in re.findall(r'(?:^|, )(\\w+)(?=[:,=]|$)', inside) if part != 'self']\n"
        "def show(prefix, function):\n"
        "    print(prefix, *names(function.__nb_signature__[0][0]))\n"
        "for name, value in vars(module).items():\n"
        "    if name.startswith('_'): continue\n"
        "    if not isinstance(value, type): \n"
        "        show(name, value) if hasattr(value, '__nb_signature__') else print(name)\n"
        "        continue\n"
        "    print(name)\n"
        "    for member, inner in vars(value).items():\n"
        "        if member.startswith('_') and member != '__init__': continue\n"
        "        if issubclass(value, (enum.Enum, Exception)): continue\n"
        "        function = getattr(value, member)\n"
        "        show(name + '.' + member, function) if hasattr(function, '__nb_signature__') else print(name + '.' + member)\n",
        environment))
    assert code == 0, errors
    real = {line.split()[0]: line.split()[1:] for line in output.splitlines()}
    stub = {}

    tree = ast.parse((PACKAGE / "_communicator.pyi").read_text())
    options = next(node for node in tree.body if getattr(node, "name", "") == "_Options")
    of_every_call = [each.target.id for each in options.body if isinstance(each, ast.AnnAssign)]

    def arguments(function):
        every = [*function.args.args, *function.args.kwonlyargs]
        return [each.arg for each in every if each.arg != "self"] + (of_every_call if function.args.kwarg else [])

    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            stub[node.name] = arguments(node)
        elif isinstance(node, ast.AnnAssign):
            stub[node.target.id] = []
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            stub[node.name] = []
            if any(base.id in ("IntEnum", "RuntimeError") for base in node.bases):
                continue
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name not in ("__enter__", "__exit__"):
                    stub[f"{node.name}.{inner.name}"] = arguments(inner)
    assert len(real) > 40, real
    real.pop("Request.__init__")  # refuses to be called
    differing = {name: (real.get(name), stub.get(name)) for name in {*real, *stub}
                 if real.get(name) != stub.get(name)}
    assert not differing, differing


def run(environment):
    found = []
    for body in _cases:
        try:
            body(environment)
            found.append(("ok", body.__name__, ""))
        except Exception:  # noqa: BLE001 - the next case still runs
            found.append(("fail", body.__name__, traceback.format_exc()))
    return found
