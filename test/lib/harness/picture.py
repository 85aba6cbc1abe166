"""Charts as SVG files, written without any library.

    drawing = picture.Drawing(800, 300, "what it shows")
    picture.bars(drawing, 200, 30, 500, {"group": {"name": 1.5}}, {"name": "#0284c7"}, "{:.1f} %".format)
    drawing.save(path)
"""

import html

INK, FAINT = "#334155", "#cbd5e1"
BAR, GAP = 11, 8            # height of a bar, and the gap between two groups


class Drawing:
    """Elements in the order in which they are drawn."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.elements = []

    def _add(self, element, content="", **attributes):
        written = "".join(f' {name.replace("_", "-")}="{value:.1f}"' if isinstance(value, float) else
                          f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
        self.elements.append(f"<{element}{written}>{html.escape(content)}</{element}>" if content
                             else f"<{element}{written}/>")

    def text(self, x, y, content, anchor="start", size=11, fill=INK):
        self._add("text", content, x=float(x), y=float(y), text_anchor=anchor, font_size=size, fill=fill)

    def line(self, x1, y1, x2, y2, stroke=INK, width=1):
        self._add("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), stroke=stroke, stroke_width=width)

    def box(self, x, y, width, height, fill):
        self._add("rect", x=float(x), y=float(y), width=float(width), height=float(height), fill=fill)

    def dot(self, x, y, radius, fill, opacity=1):
        self._add("circle", cx=float(x), cy=float(y), r=radius, fill=fill, fill_opacity=opacity)

    def save(self, path):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}"'
                f' width="{self.width}" height="{self.height}" font-family="sans-serif" role="img">')
        lines = [head, f"<title>{html.escape(self.title)}</title>",
                 f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>', *self.elements, "</svg>"]
        path.write_text("\n".join(lines) + "\n")


def bars_height(groups):
    return sum(len(own) * BAR + GAP for own in groups.values())


def bars(drawing, x, y, width, groups, colours, label):
    """Horizontal bars in groups: {group: {name: value or (value, low, high)}}; returns where they end."""
    figures = [figure if isinstance(figure, (tuple, list)) else (figure,) * 3
               for own in groups.values() for figure in own.values()]
    lowest, highest = min(0, *(min(f) for f in figures)), max(0, *(max(f) for f in figures))
    scale = width / ((highest - lowest) or 1)
    zero = x - lowest * scale
    top = y
    for group, own in groups.items():
        drawing.text(x - 8, y + len(own) * BAR / 2 + 4, group, anchor="end")
        for name, figure in own.items():
            value, low, high = figure if isinstance(figure, (tuple, list)) else (figure,) * 3
            drawing.box(min(zero, zero + value * scale), y, abs(value) * scale, BAR - 2, colours[name])
            if high > low:
                drawing.line(zero + low * scale, y + BAR / 2 - 1, zero + high * scale, y + BAR / 2 - 1)
            drawing.text(zero + max(value, high, 0) * scale + 4, y + BAR - 3, label(value), size=8)
            y += BAR
        y += GAP
    drawing.line(zero, top - 3, zero, y - GAP + 3)
    return y


def legend(drawing, x, y, colours, column, columns=2):
    """The meaning of the colours, in columns of this width."""
    for i, (name, colour) in enumerate(colours.items()):
        left, line = x + column * (i % columns), y + 15 * (i // columns)
        drawing.box(left, line - 8, 9, 9, colour)
        drawing.text(left + 14, line, name, size=10)


def dots(drawing, x, y, width, rows, colour, bad):
    """One line of dots per row: {row: [share of the bound]}; dots beyond twice the bound stand at the edge."""
    height = 22
    bottom = y + height * len(rows)
    for share in (0, 0.5, 1, 1.5, 2):
        at = x + width * share / 2
        drawing.line(at, y, at, bottom, stroke=INK if share == 1 else FAINT)
        drawing.text(at, bottom + 14, f"{share * 100:.0f} %{'+' if share == 2 else ''}", anchor="middle", size=9)
    for row, shares in rows.items():
        middle = y + height / 2
        drawing.text(x - 10, middle + 4, row, anchor="end")
        # spread a little, so that equal ones do not hide each other
        for i, share in enumerate(sorted(shares)):
            drawing.dot(x + width * min(share, 2) / 2, middle + (i * 7 % 11 - 5), 2.2,
                        bad if share > 1 else colour, opacity=0.5)
        y += height
    return bottom + 14
