"""Draws how seconds grow with size, both logarithmic, as SVG; standard library only."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 440, 70, 50, 30, 170
COLOURS = ("#1b6ca8", "#b5531c", "#3f7d20", "#7a3b8f", "#8a6d00")

Points = Sequence[tuple[int, float]]


def draw(series: Mapping[str, Points], slopes: Mapping[str, float | None], title: str, what: str) -> str:
    """The picture as SVG text: seconds over size, a line a series, its fitted exponent in the legend.

    `series` has (size, seconds) pairs, `slopes` the exponents, both by name; `what` names the sizes.
    """
    points = [point for values in series.values() for point in values]
    sizes = sorted({size for size, _ in points})
    x_low, x_high = math.log10(sizes[0]), math.log10(sizes[-1])
    y = [math.log10(seconds) for _, seconds in points]
    y_low, y_high = math.floor(min(y)), math.ceil(max(y))
    plot_w, plot_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(size: float, seconds: float) -> tuple[float, float]:
        across = (math.log10(size) - x_low) / (x_high - x_low)
        up = (math.log10(seconds) - y_low) / (y_high - y_low)
        return LEFT + across * plot_w, TOP + (1 - up) * plot_h

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            'font-size="13" role="img">'
        ),
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for exponent in range(y_low, y_high + 1):
        _, height = at(sizes[0], 10.0**exponent)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + plot_w}" y1="{height:.1f}" y2="{height:.1f}" stroke="#ddd"/>')
        label = f"{10.0**exponent:g} s"
        parts.append(f'<text x="{LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{label}</text>')
    for size in sizes:
        across, _ = at(size, 10.0**y_low)
        parts.append(f'<line x1="{across:.1f}" x2="{across:.1f}" y1="{TOP}" y2="{TOP + plot_h}" stroke="#eee"/>')
        label = f"{size // 1024}k"
        parts.append(f'<text x="{across:.1f}" y="{TOP + plot_h + 18}" text-anchor="middle">{label}</text>')
    parts.append(
        f'<text x="{LEFT + plot_w / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(what)} (k = 1,024)</text>'
    )
    for number, (name, own) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        line = " ".join("{:.1f},{:.1f}".format(*at(*pair)) for pair in own)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += ['<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>'.format(*at(*pair), colour) for pair in own]
        slope = slopes.get(name)
        height = TOP + 16 + 36 * number
        parts.append(f'<text x="{LEFT + plot_w + 14}" y="{height}" fill="{colour}">{escape(name)}</text>')
        if slope is not None:
            parts.append(f'<text x="{LEFT + plot_w + 14}" y="{height + 16}" fill="#555">grows as n^{slope:.2f}</text>')
    return "\n".join([*parts, "</svg>", ""])


def slope(points: Iterable[tuple[float, float]]) -> float | None:
    """Slope of log y over log x by least squares: 1 is linear growth; None of fewer than two points."""
    pairs = [(math.log(x), math.log(y)) for x, y in points]
    return None if len(pairs) < 2 else statistics.linear_regression(*zip(*pairs, strict=True)).slope
