"""What a run of the matrix looks like: a table for people, a picture of time over bound."""
import math

COLORS = {"arena": "#0b6e4f", "malloc": "#73c2a5", "openmpi": "#c1121f", "han": "#e07a5f", "mpich": "#3d5a80",
          "gloo": "#8d6a9f"}
PANEL = (300, 190)
MARGIN = (58, 34)


def size_text(size):
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def time_text(micros):
    if micros is None:
        return "-"
    return f"{micros:.2f}" if micros < 100 else f"{micros:.0f}"


def heading(programs):
    return f"{'layout':<12} {'collective':<15} {'bytes':>6} " + " ".join(f"{name:>9}" for name in programs) + \
        f" {'bound':>9} {'arena x':>8} {'malloc x':>8}  processors"


def line(row, programs):
    times = " ".join(f"{time_text(row['p50_us'].get(name)):>9}" for name in programs)
    ratios = " ".join(f"{row['ratio'][name]:>8.2f}" if name in row["ratio"] else f"{'-':>8}"
                      for name in ("arena", "malloc"))
    places = row["places"][0] if len(row["places"]) == 1 else "moved: " + " ".join(row["places"])
    return f"{row['layout']:<12} {row['collective']:<15} {size_text(row['bytes']):>6} {times} " \
           f"{time_text(row['bound_us']):>9} {ratios}  {places}"


def lost(rows):
    """Cells in which a peer was faster than isthmus on the same kind of buffer."""
    return [(row, name) for row in rows for name in ("arena", "malloc")
            if row["ratio"].get(name) is not None and row["ratio"][name] < 1]


def summary(rows):
    judged = [row for row in rows if row["ratio"]]
    behind = lost(rows)
    lines = [f"{len(judged)} rows with a peer; behind the best of them in {len(behind)} cells"]
    for row, name in behind:
        where = f"{row['layout']} {row['collective']} {size_text(row['bytes'])} {name}"
        lines.append(f"  {where}: {row['ratio'][name]:.2f} of its speed")
    return "\n".join(lines)


def svg(rows, programs):
    """One panel for each layout and collective: time over bound (over our arena where there is no bound) by size."""
    panels = {}
    for row in rows:
        if row["bytes"] and row["p50_us"].get("arena"):
            panels.setdefault((row["layout"], row["collective"]), []).append(row)
    columns = 4
    width = columns * (PANEL[0] + MARGIN[0]) + 20
    height = (len(panels) + columns - 1) // columns * (PANEL[1] + 2 * MARGIN[1]) + 40
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>']
    for index, name in enumerate(programs):
        parts.append(f'<rect x="{20 + 90 * index}" y="8" width="12" height="12" fill="{COLORS[name]}"/>'
                     f'<text x="{36 + 90 * index}" y="18">{name}</text>')
    for index, ((layout, collective), mine) in enumerate(panels.items()):
        left = MARGIN[0] + index % columns * (PANEL[0] + MARGIN[0])
        top = 40 + MARGIN[1] + index // columns * (PANEL[1] + 2 * MARGIN[1])
        parts.append(panel(f"{collective}, {layout}", mine, programs, left, top))
    return "\n".join(parts + ["</svg>\n"])


def panel(title, rows, programs, left, top):
    width, height = PANEL
    values = {name: [(index, time / (row["bound_us"] or row["p50_us"]["arena"]))
                     for index, row in enumerate(rows) if (time := row["p50_us"].get(name))] for name in programs}
    most = max(value for line_ in values.values() for _, value in line_)
    least = min(value for line_ in values.values() for _, value in line_)
    low, high = math.floor(math.log2(least)), math.ceil(math.log2(most) + 0.01)

    def at(index, value):
        x = left + (index + 0.5) * width / len(rows)
        return f"{x:.1f},{top + height - (math.log2(value) - low) / (high - low) * height:.1f}"

    parts = [f'<text x="{left}" y="{top - 8}" font-weight="bold">{title}</text>',
             f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>']
    step = max(1, (high - low) // 6)
    for power in range(low, high + 1, step):
        y = top + height - (power - low) / (high - low) * height
        color = "#333" if power == 0 else "#ddd"
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="{color}"/>'
                     f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{2.0 ** power:g}</text>')
    for index, row in enumerate(rows):
        x = left + (index + 0.5) * width / len(rows)
        star = "" if row["bound_us"] else "*"
        label = size_text(row["bytes"]) + star
        parts.append(f'<text x="{x:.1f}" y="{top + height + 14}" text-anchor="middle">{label}</text>')
    for name, points in values.items():
        if points:
            path = " ".join(at(index, value) for index, value in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{COLORS[name]}" stroke-width="2"/>')
    return "\n".join(parts)
