"""What the headline prints and draws."""

import math

UNITS = {"gbit": 1e9, "mbit": 1e6, "kbit": 1e3}
HEADLINE = 6.9  # veGiantModel's announcement: as many times the throughput, at most
# Of the pairs that are compared: what is wanted, and at which rate (None: the slowest over the fastest).
GOALS = (
    ("fsdp2/gloo", "placed", "500mbit", 5.5), ("fsdp2/gloo", "placed", "200mbit", 12.0),
    ("fsdp2/gloo", "fsdp2/isthmus", "1gbit", 1.5), ("ddp/gloo", "ddp/isthmus", "1gbit", 1.2),
    ("hsdp/gloo", "hsdp/isthmus", "1gbit", 1.5), ("tpdp/gloo", "tpdp/isthmus", "1gbit", 1.2),
)
MOST_SLOWER, LEAST_SLOWER = 1.10, 4.0  # of placed, and of ZeRO-3 on gloo, over the rates
COLORS = ("#d62728", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#bcbd22", "#7f7f7f", "#17becf", "#1f77b4")


def bits(rate):
    number = rate.rstrip("abcdefghijklmnopqrstuvwxyz")
    return float(number) * UNITS[rate[len(number):]]


def megabytes(values):
    return f"{max(values) / 1e6:.2f}" if values else "-"


def line(point):
    return (f"{point['rate']:>8} batch {point['batch']:>2} {point['program']:<14} {point['step_seconds']:7.3f} s a step, "
            f"{megabytes(point['node_bytes'])} MB out of the dearest node"
            + (f", {megabytes(point['predicted_node_bytes'])} of payload predicted"
               if point["predicted_node_bytes"] else ""))


def by_program(document, batch):
    """{program: {rate: point}} in the order of the run."""
    found = {}
    for point in document["points"]:
        if point["batch"] == batch:
            found.setdefault(point["program"], {})[point["rate"]] = point
    return found


def passes(document, batch, factor=HEADLINE):
    """The rate at which ZeRO-3 on gloo takes `factor` times as long as placed: between two that were measured,
    both times straight on logarithms. None where that is never so."""
    found = by_program(document, batch)
    slow, fast = found.get("fsdp2/gloo", {}), found.get("placed", {})
    rates = sorted((rate for rate in slow if rate in fast), key=bits)
    ratios = [slow[rate]["step_seconds"] / fast[rate]["step_seconds"] for rate in rates]
    for at in range(len(rates) - 1):
        if ratios[at] >= factor > ratios[at + 1]:
            share = math.log(ratios[at] / factor) / math.log(ratios[at] / ratios[at + 1])
            low, high = math.log(bits(rates[at])), math.log(bits(rates[at + 1]))
            return math.exp(low + share * (high - low))
    return None


def spread(points):
    """The time over the slowest link over that over the fastest."""
    rates = sorted(points, key=bits)
    if len(rates) < 2:
        return None
    return points[rates[0]]["step_seconds"] / points[rates[-1]]["step_seconds"]


def goals(document, batch):
    """(text, value, wanted, whether it is met) of all that this run can say."""
    found, rows = by_program(document, batch), []
    for slow, fast, rate, wanted in GOALS:
        points = [found.get(name, {}).get(rate) for name in (slow, fast)]
        if None not in points:
            value = points[0]["step_seconds"] / points[1]["step_seconds"]
            rows.append((f"{slow} over {fast} at {rate}", value, f">= {wanted}", value >= wanted))
    for name, limit, is_most in (("placed", MOST_SLOWER, True), ("fsdp2/gloo", LEAST_SLOWER, False)):
        value = spread(found.get(name, {}))
        if value is not None:
            rows.append((f"{name}: slowest link over fastest", value, f"{'<=' if is_most else '>='} {limit}",
                         value <= limit if is_most else value >= limit))
    return rows


def text_of_batch(document, batch):
    found = by_program(document, batch)
    rates = sorted({rate for points in found.values() for rate in points}, key=bits, reverse=True)
    lines = [f"seconds a step, {batch} sequences of 128 bytes, {document['nodes']} nodes x "
             f"{document['ranks_of_node']} ranks",
             f"{'program':<15}" + "".join(f"{rate:>9}" for rate in rates)
             + f"{'MB out':>9}{'payload':>9}{'loss apart':>12}"]
    for name, points in found.items():
        times = "".join(f"{points[rate]['step_seconds']:9.2f}" if rate in points else f"{'-':>9}" for rate in rates)
        last = points[[rate for rate in rates if rate in points][-1]]
        apart = max(value for each, value in document["loss_difference"].items()
                    if each == name or name == "placed" and each.startswith("placed"))
        lines.append(f"{name:<15}{times}{megabytes(last['node_bytes']):>9}"
                     f"{megabytes(last['predicted_node_bytes']):>9}{apart:12.1e}")
    for name, points in found.items():
        if name == "placed":
            lines += [f"{rate}: placed as " + ", ".join(f"{axis} {count}" for axis, count in point["degrees"].items() if count > 1)
                      + f", micro-batches of {point['micro_batch']}; {point['predicted_seconds']:.2f} s were predicted"
                      for rate, point in points.items()]
    for what, value, wanted, is_met in goals(document, batch):
        lines.append(f"{what:<48} {value:7.2f}  wanted {wanted}{'' if is_met else '  <- MISSED'}")
    where = passes(document, batch)
    if where:
        lines.append(f"ZeRO-3 on gloo takes {HEADLINE} times as long as placed at {where / 1e6:.0f} Mbit/s")
    return lines


def text(document):
    lines = []
    for batch in sorted({point["batch"] for point in document["points"]}):
        lines += [*text_of_batch(document, batch), ""]
    lines.append("MB out: of the node that sends most at the slowest rate, as its kernel counts (frames, headers, "
                 "answers); payload: predicted")
    lines.append(f"largest difference to the losses of one process: {max(document['loss_difference'].values()):.1e}; "
                 f"took {document['seconds']:.0f} s")
    return "\n".join(lines)


class _Plot:
    """One chart: rates across, seconds up, both logarithmic."""

    def __init__(self, left, width, height, rates, seconds):
        self.left, self.width, self.height = left, width, height
        self.rates = (math.log(min(rates)), math.log(max(rates)))
        self.seconds = (math.log(min(seconds) * 0.8), math.log(max(seconds) * 1.25))

    def x(self, rate):
        low, high = self.rates
        return self.left + 60 + (math.log(rate) - low) / max(high - low, 1e-9) * (self.width - 210)

    def y(self, seconds):
        low, high = self.seconds
        return self.height - 60 - (math.log(seconds) - low) / (high - low) * (self.height - 110)


def _labels(ends, least=14):
    """Places for labels, no two nearer than `least`."""
    places, before = {}, -1e9
    for name, y in sorted(ends.items(), key=lambda each: each[1]):
        before = max(y, before + least)
        places[name] = before
    return places


def _chart(document, batch, left, width, height):
    found = by_program(document, batch)
    rates = sorted({bits(rate) for points in found.values() for rate in points})
    plot = _Plot(left, width, height, rates,
                 [point["step_seconds"] for points in found.values() for point in points.values()])
    parts = [f'<text x="{left + 60}" y="26" font-size="15" font-weight="bold">{batch} sequences a step</text>',
             f'<text x="{left + 60}" y="{height - 14}">link of each node, Gbit/s</text>']
    for rate in rates:
        x = plot.x(rate)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="40" y2="{height - 60}" stroke="#eee"/>'
                     f'<text x="{x:.1f}" y="{height - 40}" text-anchor="middle">{rate / 1e9:g}</text>')
    for tick in (0.5, 1, 2, 5, 10, 20, 50):
        if plot.seconds[0] <= math.log(tick) <= plot.seconds[1]:
            y = plot.y(tick)
            parts.append(f'<line x1="{left + 60}" x2="{left + width - 150}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                         f'<text x="{left + 52}" y="{y + 4:.1f}" text-anchor="end">{tick:g} s</text>')
    ends = {}
    for (name, points), color in zip(found.items(), COLORS, strict=False):
        ordered = sorted(points.values(), key=lambda point: bits(point["rate"]))
        places = [(plot.x(bits(point["rate"])), plot.y(point["step_seconds"])) for point in ordered]
        ends[name] = places[-1][1]
        dashes = ' stroke-dasharray="5 4"' if name.endswith("gloo") else ""
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="{3 if name == "placed" else 1.6}"{dashes} '
                     f'points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"><title>{name} {point["rate"]}: '
                  f'{point["step_seconds"]:.2f} s</title></circle>'
                  for (x, y), point in zip(places, ordered, strict=True)]
    colors = dict(zip(found, COLORS, strict=False))
    parts += [f'<text x="{left + width - 142}" y="{y + 4:.1f}" fill="{colors[name]}">{name}</text>'
              for name, y in _labels(ends).items()]
    return parts


def picture(document):
    """One SVG file: a chart for each batch, a line for each program."""
    batches = sorted({point["batch"] for point in document["points"]})
    width, height = 560, 460
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * len(batches)} {height}" '
             'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>']
    for at, batch in enumerate(batches):
        parts += _chart(document, batch, at * width, width, height)
    return "\n".join([*parts, "</svg>"]) + "\n"
