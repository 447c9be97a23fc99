"""Draws the growth of the certificate as a log-log picture, from benchmarks/results/certificate_scaling.json.

    python benchmarks/picture.py

Writes benchmarks/results/certificate_scaling.svg; standard library only.
"""

import json
import math
from html import escape
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 440, 70, 50, 30, 170
COLOURS = ("#1b6ca8", "#b5531c", "#3f7d20", "#7a3b8f")


def ticks(low: float, high: float) -> list[int]:
    """Powers of ten between two exponents."""
    return list(range(math.floor(low), math.ceil(high) + 1))


def draw(document: dict[str, object]) -> str:
    """The picture as SVG text: seconds over endpoints, a line a task, its fitted exponent in the legend."""
    points = [point for point in document["points"] if point["seconds"]]  # type: ignore[attr-defined]
    sizes = sorted({point["endpoints"] for point in points})
    x_low, x_high = math.log10(sizes[0]), math.log10(sizes[-1])
    y = [math.log10(point["seconds"]) for point in points]
    y_low, y_high = math.floor(min(y)), math.ceil(max(y))
    plot_w, plot_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(endpoints: float, seconds: float) -> tuple[float, float]:
        across = (math.log10(endpoints) - x_low) / (x_high - x_low)
        up = (math.log10(seconds) - y_low) / (y_high - y_low)
        return LEFT + across * plot_w, TOP + (1 - up) * plot_h

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            'font-size="13" role="img">'
        ),
        "<title>Seconds of the certificate over endpoints of the fabric, both logarithmic</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for exponent in ticks(y_low, y_high):
        _, height = at(sizes[0], 10.0**exponent)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + plot_w}" y1="{height:.1f}" y2="{height:.1f}" stroke="#ddd"/>')
        label = f"{10.0**exponent:g} s"
        parts.append(f'<text x="{LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{label}</text>')
    for size in sizes:
        across, _ = at(size, 10.0**y_low)
        parts.append(f'<line x1="{across:.1f}" x2="{across:.1f}" y1="{TOP}" y2="{TOP + plot_h}" stroke="#eee"/>')
        label = f"{size // 1024}k"
        parts.append(f'<text x="{across:.1f}" y="{TOP + plot_h + 18}" text-anchor="middle">{label}</text>')
    parts.append(f'<text x="{LEFT + plot_w / 2}" y="{HEIGHT - 8}" text-anchor="middle">endpoints (k = 1,024)</text>')
    tasks = list(dict.fromkeys(point["task"] for point in points))
    for number, task in enumerate(tasks):
        colour = COLOURS[number % len(COLOURS)]
        own = sorted((point["endpoints"], point["seconds"]) for point in points if point["task"] == task)
        line = " ".join("{:.1f},{:.1f}".format(*at(*pair)) for pair in own)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += ['<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>'.format(*at(*pair), colour) for pair in own]
        slope = document["exponents"][task]  # type: ignore[index]
        height = TOP + 16 + 36 * number
        parts.append(f'<text x="{LEFT + plot_w + 14}" y="{height}" fill="{colour}">{escape(task)}</text>')
        if slope is not None:
            parts.append(f'<text x="{LEFT + plot_w + 14}" y="{height + 16}" fill="#555">grows as n^{slope:.2f}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    data = json.loads((RESULTS / "certificate_scaling.json").read_text(encoding="utf-8"))
    (RESULTS / "certificate_scaling.svg").write_text(draw(data), encoding="utf-8")
