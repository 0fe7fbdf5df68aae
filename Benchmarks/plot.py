"""Draws the growth as SVG. Its colours follow the reader's light or dark scheme."""

import math

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM, GAP = 820, 340, 52, 46, 16, 74, 60
COLOURS = {"token": "a", "git-credential get": "b", "git credential-store get": "c"}

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.axis { stroke: #57606a; fill: none }
.grid { stroke: #d0d7de; fill: none }
.a { stroke: #0550ae; fill: #0550ae } .b { stroke: #a0410d; fill: #a0410d } .c { stroke: #57606a; fill: #57606a }
polyline { fill: none !important; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .axis { stroke: #9198a1 }
  .grid { stroke: #30363d }
  .a { stroke: #79c0ff; fill: #79c0ff } .b { stroke: #ffa657; fill: #ffa657 } .c { stroke: #9198a1; fill: #9198a1 }
}
"""


def plot(growth):
    """Milliseconds over the number of accounts (left) and of descriptors (right), from zero."""
    highest = max(time for points in growth.values() for point in points for time in point["milliseconds"].values())
    step = next(size for size in (0.5, 1, 2, 5, 10, 20, 50) if highest / size <= 6)
    top = step * math.ceil(highest / step)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Time of one process, over accounts and over descriptors">',
        f"<style>{STYLE}</style>",
    ]
    panel = (WIDTH - LEFT - RIGHT - GAP) / 2
    for number, axis in enumerate(("accounts", "descriptors")):
        out += draw(growth[axis], axis, LEFT + number * (panel + GAP), panel, top, step)
    at = LEFT
    for name, colour in COLOURS.items():
        out.append(f'<circle class="{colour}" cx="{at}" cy="{HEIGHT - 14}" r="4"/>')
        out.append(f'<text x="{at + 10}" y="{HEIGHT - 10}">{name}</text>')
        at += 200
    return "\n".join([*out, "</svg>", ""])


def draw(points, axis, left, width, top, step):
    height = HEIGHT - TOP - BOTTOM
    logarithms = [math.log10(point["count"]) for point in points]
    low, high = logarithms[0], logarithms[-1]

    def x(count):
        return left + (math.log10(count) - low) / (high - low) * width

    def y(milliseconds):
        return TOP + height - milliseconds / top * height

    yield f'<text class="title" x="{left}" y="{TOP - 20}">milliseconds, by {axis}</text>'
    for number in range(round(top / step) + 1):
        at = y(number * step)
        yield f'<path class="grid" d="M{left:.1f} {at:.1f}h{width:.1f}"/>'
        yield f'<text x="{left - 8:.1f}" y="{at + 4:.1f}" text-anchor="end">{number * step:g}</text>'
    yield f'<path class="axis" d="M{left:.1f} {TOP}v{height}h{width:.1f}"/>'
    for point in points:
        label = f"{point['count']:,}".replace(",", "\u202f")
        yield f'<text x="{x(point["count"]):.1f}" y="{TOP + height + 18}" text-anchor="middle">{label}</text>'
    for name in points[0]["milliseconds"]:
        places = [(x(point["count"]), y(point["milliseconds"][name])) for point in points]
        line = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
        yield f'<polyline class="{COLOURS[name]}" points="{line}"/>'
        for across, down in places:
            yield f'<circle class="{COLOURS[name]}" cx="{across:.1f}" cy="{down:.1f}" r="3"/>'
