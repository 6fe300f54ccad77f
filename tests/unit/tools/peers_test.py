"""The comparison with peers, without running any: layouts, rows, what counts as lost, the gate, the picture."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

BENCHMARKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, "benchmarks")
sys.path.insert(0, os.path.join(BENCHMARKS, "peers"))

import figures  # noqa: E402
import matrix  # noqa: E402
import mpi  # noqa: E402
import overlap  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import section  # noqa: E402
import sides  # noqa: E402
from layouts import Layout  # noqa: E402


class FakeSides:
    """Programs with known times; the processors move during the rounds that are named."""

    def __init__(self, probes):
        self.probes = iter(probes)

    def probe(self):
        return next(self.probes)

    def isthmus(self, collective, size, layout, memory):
        time = {"arena": 10.0, "malloc": 40.0}[memory]
        return {"p50_us": time, "p99_us": 2 * time, "mean_us": time, "bound_us": 5.0}

    def torch(self, collectives, sizes, ranks, nodes=None, rate=None):
        return {(collectives[0], size): {"gloo_us": 30.0, "isthmus_us": 12.0, "shared_us": 6.0} for size in sizes}

    def bounds(self, ranks, size):
        return {"all_reduce_us": 8.0}


def row(layout="2", collective="all_reduce", size=65536, arena=2.0, places=("far",)):
    return {"layout": layout, "collective": collective, "bytes": size, "places": list(places),
            "p50_us": {"arena": 1.0, "openmpi": arena}, "p99_us": {}, "bound_us": 0.8, "ratio": {"arena": arena}}


class Layouts(unittest.TestCase):
    def test_are_ranks_here_or_nodes_with_a_rate(self):
        here, nodes = Layout.of("4"), Layout.of("2x4@5gbit")
        self.assertEqual((here.ranks, here.is_here), (4, True))
        self.assertEqual((nodes.ranks, nodes.shape, nodes.rate, nodes.is_here), (8, "2x4", "5gbit", False))

    def test_that_say_too_little_are_refused(self):
        for text in ("2x4", "4@5gbit", "", "x4", "0", "0x2@1gbit", "three"):
            with self.assertRaises(ValueError, msg=text):
                Layout.of(text)


class Rows(unittest.TestCase):
    def measure(self, probes, size=65536, layout="2"):
        found = matrix.Matrix(FakeSides(probes), ["arena", "malloc", "gloo"], 1, lambda text: None)
        return list(found.measure(Layout.of(layout), ["all_reduce"], [size]))[0]

    def test_have_the_best_peer_by_ours_and_the_bound_of_memory(self):
        one = self.measure([50, 50])
        self.assertEqual(one["ratio"], {"arena": 3.0, "malloc": 0.75})
        self.assertEqual((one["bound_us"], one["places"]), (8.0, ["near"]))
        self.assertEqual(one["torch_us"], {"ordinary": 12.0, "shared": 6.0})

    def test_have_the_bound_of_the_card_between_nodes(self):
        self.assertEqual(self.measure([50, 50], layout="2x1@1gbit")["bound_us"], 5.0)

    def test_are_measured_again_when_the_processors_moved(self):
        self.assertEqual(self.measure([50, 300, 300, 300])["places"], ["far"])
        self.assertEqual(self.measure([50, 300] * 3)["places"], ["far", "near"])  # three times in vain

    def test_of_missing_programs_are_empty_and_the_reason_is_told_once(self):
        said = []
        found = matrix.Matrix(FakeSides([50] * 8), ["mpich"], 2, said.append)

        def refuse(*_):
            raise sides.Unavailable("mpicc.mpich is not installed")
        original, matrix.mpi.measure = matrix.mpi.measure, refuse
        try:
            one = list(found.measure(Layout.of("2"), ["all_reduce"], [8]))[0]
        finally:
            matrix.mpi.measure = original
        self.assertEqual((one["p50_us"], one["ratio"]), ({}, {}))
        self.assertEqual(sum("mpich" in text for text in said), 1)
        self.assertIn("mpich", found.missing)

    def test_are_left_out_where_blocks_would_be_empty(self):
        found = matrix.Matrix(FakeSides([50] * 8), ["arena", "gloo"], 1, lambda text: None)
        rows = list(found.measure(Layout.of("4"), ["all_to_all", "broadcast"], [8, 64]))
        self.assertEqual([(one["collective"], one["bytes"]) for one in rows],
                         [("all_to_all", 64), ("broadcast", 8), ("broadcast", 64)])

    def test_bytes_of_memory_follow_from_who_reads_and_writes_what(self):
        # all-reduce: p n in, p n out; reduce-scatter: p n in, n out; broadcast: n in, (p - 1) n out.
        self.assertEqual(matrix.bytes_moved("reduce_scatter", 4), 5 / 8)
        self.assertEqual(matrix.bytes_moved("broadcast", 4), 4 / 8)
        self.assertIsNone(matrix.bytes_moved("barrier", 4))


class Reports(unittest.TestCase):
    def test_name_every_cell_that_is_behind(self):
        text = report.summary([row(arena=2.0), row(collective="broadcast", arena=0.5)])
        self.assertIn("2 rows with a peer; behind the best of them in 1 cells", text)
        self.assertIn("2 broadcast 64K arena: 0.50 of its speed", text)

    def test_draw_one_line_for_each_program_and_panel(self):
        picture = report.svg([row(size=1024), row(size=65536), row("4")], ["arena", "openmpi"])
        root = xml.etree.ElementTree.fromstring(picture)
        lines = root.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual(len(lines), 4)
        self.assertEqual(len(lines[0].get("points").split()), 2)

    def test_say_sizes_as_people_do(self):
        self.assertEqual([report.size_text(size) for size in (8, 1024, 1 << 20, 1000)], ["8", "1K", "1M", "1000"])


class Figures(unittest.TestCase):
    def test_are_held_by_their_limits(self):
        self.assertTrue(rows.row_of("speed", 90, 90, "%", True)["holds"])
        self.assertFalse(rows.row_of("cost", 0.16, 0.15, "", False)["holds"])
        missed = {**rows.row_of("cost", 0.0123, 0.01, "s", False, "why"), "placement": ["near", "far"]}
        self.assertRegex(figures.text([missed]), "cost +0.0123 s +<= 0.01 s MISSED near-far +why")

    def test_that_cannot_be_measured_say_why(self):
        def refuse(*_):
            raise sides.Unavailable("overlap is not built")
        with unittest.mock.patch.dict(figures.PARTS, {"overlap": refuse}):
            found = figures.measure(FakeSides([50, 50]), ["overlap"], lambda text: None)
        self.assertEqual((found[0]["what"], found[0]["value"]), ("overlap", None))
        self.assertIn("overlap is not built", figures.text(found))

    def test_of_overlap_are_medians_with_the_peer_beside(self):
        class Ranks(FakeSides):
            def as_ranks(self, name, words, layout, is_bound):
                share = next(self.probes)
                return [{"bytes": int(word.split(":")[0]), "overlap": share, "overlap_of_turns": 1.0, "alone_us": 2e3,
                         "processors": 0.5} for word in words]
        peer = {1 << 20: {"overlap": 3.0, "overlap_of_turns": 2.0, "alone_us": 9e3}}
        with unittest.mock.patch.object(mpi, "as_ranks", lambda *_: peer):
            found = list(overlap.PARTS["overlap"](Ranks([80, 95, 91]), lambda text: None))
        self.assertEqual([(row["value"], row["holds"]) for row in found], [(91, True)] * 3)
        self.assertIn("80-95; of a fixed amount of computing 1 %; alone 2.00 ms on 0.50 processors", found[0]["detail"])
        self.assertIn("Open MPI 3 % and 2 %", found[0]["detail"])
        self.assertNotIn("Open MPI", found[1]["detail"])


class Gate(unittest.TestCase):
    def run_gate(self, accepted, new, *options):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, rows in (("old", accepted), ("new", new)):
                paths.append(os.path.join(folder, name))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    json.dump({"rows": rows}, file)
            return subprocess.run([sys.executable, os.path.join(BENCHMARKS, "gate.py"), *paths, *options],
                                  capture_output=True, text=True, timeout=60)

    def test_passes_what_lost_little_and_fails_what_lost_more(self):
        self.assertEqual(self.run_gate([row(arena=2.0)], [row(arena=1.71)]).returncode, 0)
        lost = self.run_gate([row(arena=2.0)], [row(arena=1.69)])
        self.assertEqual(lost.returncode, 1)
        self.assertIn("2 all_reduce 65536 arena: best peer / ours was 2.00, is 1.69", lost.stdout)

    def test_does_not_judge_while_the_processors_move(self):
        new = [row(arena=0.1, places=("far", "near")), row("4")]
        self.assertEqual(self.run_gate([row(), row("4")], new).stdout.strip(),
                         "1 cells judged, 0 lost more than 15 %, 1 moved")

    def test_with_nothing_to_judge_is_no_success(self):
        self.assertEqual(self.run_gate([row("2")], [row("4")]).returncode, 2)

    def test_takes_no_file_without_rows(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("{}")
            file.flush()
            done = subprocess.run([sys.executable, os.path.join(BENCHMARKS, "gate.py"), file.name, file.name],
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no rows", done.stderr)


class Section(unittest.TestCase):
    MACHINE = {"machine": {"date": "2026-11-30", "processors": 2, "processor": "a Xeon", "kernel": "6.1"}}

    def text(self, *rows):
        return section.section({**self.MACHINE, "rows": list(rows)})

    def test_marks_the_cells_that_a_peer_wins_and_counts_them(self):
        text = self.text(row(arena=2.0), row(size=1 << 20, arena=0.5), row("2x2@5gbit", size=1 << 20, arena=123.4))
        self.assertIn("| all_reduce | arena | 2.00 | **0.50** |", text)
        self.assertIn("| all_reduce | arena | 123 |", text)
        self.assertIn("| all_reduce | 80 |", text)  # of the bound: 0.8 of 1.0 us
        self.assertIn("Not won: 1 of 3 cells, the bold ones.", text)
        self.assertIn("**2x2 nodes x ranks at 5gbit**", text)

    def test_has_gloo_by_ours_from_torch(self):
        one = row()
        one["p50_us"]["gloo"], one["torch_us"] = 30.0, {"ordinary": 12.0, "shared": 60.0}
        self.assertIn("| all_reduce | ordinary | 2.50 |\n| all_reduce | of our allocator | **0.50** |", self.text(one))

    def test_stands_between_its_marks_and_nowhere_else(self):
        before = "\n".join(["above", *section.MARKS, "below"])
        once = section.placed(before, "table")
        self.assertEqual(once, "\n".join(["above", section.MARKS[0], "table", section.MARKS[1], "below"]))
        self.assertEqual(section.placed(once, "table"), once)
        with self.assertRaises(ValueError):
            section.placed("above", "table")


class Readme(unittest.TestCase):
    def test_says_what_the_accepted_run_says(self):
        checked = subprocess.run([sys.executable, os.path.join(BENCHMARKS, "peers", "section.py"),
                                  os.path.join(BENCHMARKS, "accepted.json"),
                                  os.path.join(BENCHMARKS, os.pardir, "README.md"), "--check"],
                                 capture_output=True, text=True, timeout=60)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))


class Runs(unittest.TestCase):
    def test_that_do_not_end_are_ended_and_named(self):
        with tempfile.NamedTemporaryFile() as program:
            found = sides.Sides(program=program.name)
        with self.assertRaisesRegex(sides.Unavailable, "sleep 60 ... did not end in 0.2 s"):
            found.run(["sleep", "60"], 0.2)


if __name__ == "__main__":
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestLoader().loadTestsFromModule(sys.modules[__name__]))
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed, {len(result.skipped)} skipped")
    sys.exit(1 if bad else 0)
