"""Every program on every layout, collective and size: sides in turn, rounds, medians over rounds."""
import contextlib
import statistics

import mpi
from layouts import Nodes
from sides import Unavailable, placement_of

PROGRAMS = ("arena", "malloc", "openmpi", "han", "mpich", "gloo")
OURS = ("arena", "malloc")
TORCH = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "uneven_all_to_all", "broadcast")
WHOLE = ("all_reduce", "broadcast")  # one operand; the others have a block for each rank
BLOCK_BYTES = 16  # which isthmus bench rounds down to, as nccl-tests: below there is nothing to move
MOST_REPEATS = 2  # of a round during which the processors moved


def bytes_moved(collective, ranks):
    """Of a collective in memory that all map, in bytes of DRAM, by those of an all-reduce: limits of its section 5a,
    around the caches."""
    return {"all_reduce": 1, "all_gather": 1, "all_to_all": 1, "uneven_all_to_all": 1, "reduce_scatter": (ranks + 1) / (2 * ranks),
            "broadcast": 1 / 2}.get(collective)


class Matrix:
    def __init__(self, sides, programs, rounds, say):
        self.sides, self.programs, self.rounds, self.say = sides, programs, rounds, say
        self.missing, self.hanging = {}, set()

    def measure(self, layout, collectives, sizes):
        """Rows of one layout, as they are ready."""
        for collective in collectives:
            self.say(f"{layout.text}: {collective}")
            mine = [0] if collective == "barrier" else self._moving(layout, collective, sizes)
            rounds = [self._round(layout, collective, mine) for _ in range(self.rounds)]
            for size in mine:
                yield self._row(layout, collective, size, rounds)

    @staticmethod
    def _moving(layout, collective, sizes):
        least = 0 if collective in WHOLE else BLOCK_BYTES * layout.ranks
        return [size for size in sizes if size >= least]

    def _round(self, layout, collective, sizes):
        """One turn of each program; again while the processors move, a few times."""
        for attempt in range(1 + MOST_REPEATS):
            before = placement_of(self.sides.probe())
            times = {name: self._times(name, layout, collective, sizes) for name in self.programs}
            places = sorted({before, placement_of(self.sides.probe())})
            if len(places) == 1 or attempt == MOST_REPEATS:
                return {"times": times, "places": places}

    def _times(self, name, layout, collective, sizes):
        if name in self.missing or (name, layout.text) in self.hanging:
            return {}
        try:
            return self._measured(name, layout, collective, sizes)
        except Unavailable as reason:
            self.say(f"without {name} on {layout.text} for {collective}: {reason}")
            if "did not end" in str(reason):  # nor would it for the next collective; that takes minutes
                self.hanging.add((name, layout.text))
            if "installed" in str(reason) or "no Python" in str(reason):
                self.missing[name] = str(reason)
            return {}

    def _measured(self, name, layout, collective, sizes):
        if name in OURS:
            return {size: self.sides.isthmus(collective, size, layout, name) for size in sizes}
        if name == "gloo":
            return self._gloo(layout, collective, sizes)
        if name == "han" and layout.is_here:
            return {}  # it is about several nodes
        with contextlib.ExitStack() as stack:
            nodes = None
            if not layout.is_here:
                nodes = stack.enter_context(Nodes(self.sides.program, layout, self.sides.folder))
            return mpi.measure(self.sides, name, collective, sizes, layout, nodes)

    def _gloo(self, layout, collective, sizes):
        if collective not in TORCH:
            return {}
        where = (None, None) if layout.is_here else (layout.shape, layout.rate)
        results = self.sides.torch([collective], sizes, layout.ranks, *where)
        return {size: {"p50_us": result["gloo_us"], "ordinary": result["isthmus_us"], "shared": result["shared_us"]}
                for (_, size), result in results.items()}

    def _row(self, layout, collective, size, rounds):
        row = {"layout": layout.text, "collective": collective, "bytes": size,
               "places": sorted({place for one in rounds for place in one["places"]}), "p50_us": {}, "p99_us": {}}
        for name in self.programs:
            found = [one["times"][name][size] for one in rounds if size in one["times"][name]]
            for key in ("p50_us", "p99_us"):
                values = [one[key] for one in found if one.get(key) is not None]
                if values:
                    row[key][name] = round(statistics.median(values), 3)
        gloo = [one["times"]["gloo"][size] for one in rounds if size in one["times"].get("gloo", {})]
        row["torch_us"] = {kind: round(statistics.median(one[kind] for one in gloo), 3)
                           for kind in ("ordinary", "shared") if gloo}
        row["bound_us"] = self._bound(layout, collective, size, rounds)
        peers = [time for name, time in row["p50_us"].items() if name not in OURS]
        row["ratio"] = {name: round(min(peers) / row["p50_us"][name], 3)
                        for name in OURS if peers and name in row["p50_us"]}
        return row

    def _bound(self, layout, collective, size, rounds):
        """The least time: of the busiest card's bytes on its line, or of the bytes of memory at this moment."""
        if not layout.is_here:
            bounds = [one["times"]["arena"][size]["bound_us"] for one in rounds
                      if size in one["times"].get("arena", {})]
            return bounds[0] if bounds else None
        share = bytes_moved(collective, layout.ranks)
        if share is None or size < 1 << 16:
            return None
        return share * self.sides.bounds(layout.ranks, size)["all_reduce_us"]
