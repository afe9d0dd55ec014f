# SPDX-License-Identifier: Apache-2.0
"""A few charts as SVG text: lines and bars, readable without a script."""
import html
import math

COLORS = ("#1b6ca8", "#c0392b", "#2e7d32", "#8e5a00", "#6a3d9a", "#00757a")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4")
W, H, LEFT, BOTTOM, TOP, RIGHT = 760, 280, 64, 40, 16, 150


def esc(text):
    return html.escape(str(text), quote=True)


def nice(most):
    """A round number at or above."""
    if most <= 0:
        return 1
    power = 10 ** math.floor(math.log10(most))
    for step in (1, 2, 2.5, 5, 10):
        if most <= step * power:
            return step * power
    return 10 * power


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


class Frame:
    def __init__(self, title, xlabel, ylabel, xmax, ymax, log=False):
        self.parts = [f'<svg viewBox="0 0 {W} {H}" role="img" '
                      f'aria-label="{esc(title)}"><title>{esc(title)}</title>']
        self.xmax, self.log = nice(xmax), log
        self.ymax = 10 ** max(1, math.ceil(math.log10(max(ymax, 1)))) \
            if log else nice(ymax)
        for value in self._ticks():
            y = self.y(value)
            self.parts.append(
                f'<line class="grid" x1="{LEFT}" x2="{W - RIGHT}" y1="{y:.1f}" '
                f'y2="{y:.1f}"/><text x="{LEFT - 6}" y="{y + 4:.1f}" '
                f'text-anchor="end">{number(value)}</text>')
        self.parts.append(f'<text x="{LEFT}" y="11">{esc(ylabel)}</text>')
        self.parts.append(f'<text x="{(W - RIGHT + LEFT) / 2}" y="{H - 4}" '
                          f'text-anchor="middle">{esc(xlabel)}</text>')

    def _ticks(self):
        if self.log:
            decades = round(math.log10(self.ymax))
            return [10.0 ** n for n in range(-1, decades + 1)]
        return [self.ymax * n / 4 for n in range(5)]

    def x(self, value):
        return LEFT + (W - RIGHT - LEFT) * value / self.xmax

    def y(self, value):
        part = min(value, self.ymax) / self.ymax
        if self.log:
            # from a tenth up
            decades = math.log10(self.ymax) + 1
            part = max(0.0, 1 + math.log10(max(part, 1e-9)) / decades)
        return H - BOTTOM - (H - BOTTOM - TOP) * part

    def legend(self, names, dashes=DASHES):
        for n, name in enumerate(names):
            y = TOP + 16 + 18 * n
            self.parts.append(
                f'<line x1="{W - RIGHT + 10}" x2="{W - RIGHT + 34}" '
                f'y1="{y - 4}" y2="{y - 4}" stroke="{COLORS[n % 6]}" '
                f'stroke-width="{3 if dashes else 10}" '
                f'stroke-dasharray="{dashes[n % 6] if dashes else ""}"/>'
                f'<text x="{W - RIGHT + 40}" y="{y}">{esc(name)}</text>')

    def text(self):
        return "".join(self.parts) + "</svg>"


def lines(title, xlabel, ylabel, series):
    """series: {name: [(x, y) or (x, y, low, high)]}"""
    points = [point for row in series.values() for point in row]
    if not points:
        return "<p>nothing was measured</p>"
    frame = Frame(title, xlabel, ylabel, max(p[0] for p in points),
                  max(p[3] if len(p) > 3 else p[1] for p in points))
    for n in range(5):
        value = frame.xmax * n / 4
        frame.parts.append(f'<text x="{frame.x(value):.1f}" y="{H - 22}" '
                           f'text-anchor="middle">{number(value)}</text>')
    for n, (name, row) in enumerate(series.items()):
        path = " ".join(f"{frame.x(p[0]):.1f},{frame.y(p[1]):.1f}"
                        for p in row)
        frame.parts.append(
            f'<polyline fill="none" stroke="{COLORS[n % 6]}" '
            f'stroke-width="2" stroke-dasharray="{DASHES[n % 6]}" '
            f'points="{path}"/>')
        for p in row:
            if len(p) > 3:
                x = frame.x(p[0]) + 3 * n
                frame.parts.append(
                    f'<line stroke="{COLORS[n % 6]}" x1="{x:.1f}" x2="{x:.1f}" '
                    f'y1="{frame.y(p[2]):.1f}" y2="{frame.y(p[3]):.1f}"/>')
    frame.legend(series)
    return frame.text()


def bars(title, ylabel, groups, log=False):
    """groups: {group: {bar: value}}; bars of one name share a colour."""
    names = []
    for row in groups.values():
        names += [name for name in row if name not in names]
    values = [value for row in groups.values() for value in row.values()]
    if not values:
        return "<p>nothing was measured</p>"
    frame = Frame(title, "", ylabel, 1, max(values), log)
    width = (W - RIGHT - LEFT) / max(1, len(groups))
    each = 0.8 * width / max(1, len(names))
    for g, (group, row) in enumerate(groups.items()):
        left = LEFT + g * width + 0.1 * width
        for name, value in row.items():
            n = names.index(name)
            y = frame.y(value)
            frame.parts.append(
                f'<rect x="{left + n * each:.1f}" y="{y:.1f}" '
                f'width="{max(1, each - 1):.1f}" '
                f'height="{H - BOTTOM - y:.1f}" fill="{COLORS[n % 6]}">'
                f'<title>{esc(group)} {esc(name)}: {number(value)}</title>'
                '</rect>')
        used = [names.index(name) for name in row] or [0]
        middle = left + each * (min(used) + max(used) + 1) / 2
        frame.parts.append(
            f'<text x="{middle:.1f}" y="{H - 24}" '
            f'text-anchor="middle">{esc(group)}</text>')
    frame.legend(names, dashes=None)
    return frame.text()
