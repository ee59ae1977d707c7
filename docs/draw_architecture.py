"""Draws docs/architecture.svg from the code: packages as bands, subpackages as boxes in layers, imports as arrows.

It also writes the lists at the end of docs/architecture.md.

    python docs/draw_architecture.py

A box is a package or a module inside a package. The layers come from `SUBPACKAGES` in tests/repository/test_layers.py,
read from its syntax tree so that nothing needs to be installed. If a package is not listed there, a box is one layer
above the highest box that it imports. Arrows that others imply are omitted: if a imports b and both import c, there is
no arrow from a to c.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "architecture.svg"
PAGE = ROOT / "docs" / "architecture.md"
# The heading in the page after which everything is generated.
LISTS = "\n## Packages\n"

PACKAGE = "tfconvert"

WIDTH = 1180
MARGIN = 16
PAD = 14
HEADER = 26
BOX_HEIGHT = 38
GAP = 18  # Between boxes of one layer.
LAYER_GAP = 26  # Between layers, where the arrows are visible.
BAND_GAP = 30
CROWD = 3  # If a layer has more boxes than this, they are spread over its width.
WIDEST = 9  # At most this many boxes are drawn side by side.
LETTER = 7.4  # The assumed width of a letter in names; fonts differ.
SMALL_LETTER = 6.2

STYLE = """
    svg { background: #ffffff; font-family: system-ui, "DejaVu Sans", Helvetica, Arial, sans-serif; }
    .paper { fill: #ffffff; }
    .band { fill: #f3f5f8; stroke: #c3cad4; }
    .box { fill: #ffffff; stroke: #7f8ea3; }
    .group { fill: #e8eef7; stroke: #7f8ea3; }
    .name { fill: #1b2430; font-size: 12px; font-weight: 600; }
    .count { fill: #566273; font-size: 10px; }
    .arrow { fill: none; stroke: #4d7fb8; stroke-width: 0.9; }
    .between { fill: none; stroke: #4d7fb8; stroke-width: 2; }
    .head { fill: #4d7fb8; }
    @media (prefers-color-scheme: dark) {
      svg { background: #12161c; }
      .paper { fill: #12161c; }
      .band { fill: #1a2029; stroke: #3a4553; }
      .box { fill: #232c38; stroke: #66758a; }
      .group { fill: #1f2a3a; stroke: #66758a; }
      .name { fill: #e8edf4; }
      .count { fill: #a5b1c1; }
      .arrow, .between { stroke: #76a9e0; }
      .head { fill: #76a9e0; }
    }
"""


class Box(NamedTuple):
    """A package or a module inside a package.

    Attributes:
        module: Its full name.
        sentence: The first sentence of its docstring.
        lines: The number of lines in its files, rounded to two digits.
        layers: The boxes inside it, from the bottom up; empty if it is drawn as one box.
    """

    module: str
    sentence: str
    lines: int
    layers: Sequence[Sequence[Box]] = ()

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self.module.rpartition(".")[2]

    @property
    def size(self) -> str:
        """Its size as text."""
        return f"{self.lines:,} lines"


class Place(NamedTuple):
    """The position of a box."""

    x: float
    y: float
    width: float
    height: float


class Code:
    """The syntax trees of our hand-written files.

    Attributes:
        root: The repository's root.
        trees: The trees, by module.
        lines: The number of lines of each.
        edges: The modules of ours that each imports, including late imports and imports for types.
    """

    def __init__(self, root: Path, trees: Mapping[str, ast.Module], lines: Mapping[str, int]) -> None:
        self.root = root
        self.trees = trees
        self.lines = lines
        self.edges = {module: set(self._imports(tree)) for module, tree in self.trees.items()}

    @classmethod
    def read(cls, root: Path) -> Code:
        """Reads the files of a repository."""
        trees, lines = {}, {}
        for path in sorted((root / PACKAGE).rglob("*.py")):
            if "generated" not in path.parts:
                text = path.read_text("utf-8")
                parts = path.relative_to(root).with_suffix("").parts
                module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                trees[module] = ast.parse(text)
                lines[module] = text.count("\n")
        return cls(root, trees, lines)

    def _imports(self, tree: ast.Module) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.trees)
            elif isinstance(node, ast.ImportFrom) and node.module and node.module in self.trees:
                names = (f"{node.module}.{alias.name}" for alias in node.names)
                yield from (name if name in self.trees else node.module for name in names)

    def within(self, module: str) -> list[str]:
        """Returns a box and the modules in it."""
        return [name for name in self.trees if name == module or name.startswith(f"{module}.")]

    def children(self, module: str) -> list[str]:
        """Returns the boxes directly inside a package."""
        depth = module.count(".") + 1
        return [name for name in self.within(module) if name.count(".") == depth]

    def imports(self, modules: Sequence[str]) -> dict[str, set[str]]:
        """Returns the modules among `modules` that each of them imports."""
        home = {name: module for module in modules for name in self.within(module)}
        found: dict[str, set[str]] = {module: set() for module in modules}
        for name, module in home.items():
            found[module] |= {home[target] for target in self.edges[name] if target in home} - {module}
        return found


def _literal(root: Path, name: str) -> Any:
    """Returns the value of a table in tests/repository/test_layers.py."""
    for statement in ast.parse((root / "tests" / "repository" / "test_layers.py").read_text("utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            return ast.literal_eval(statement.value)
    raise LookupError(f"tests/repository/test_layers.py has no table {name}")


def subpackages(root: Path) -> Mapping[str, Sequence[Sequence[str]]]:
    """Returns `SUBPACKAGES`: the layers of packages, from the lowest up."""
    table: Mapping[str, Sequence[Sequence[str]]] = _literal(root, "SUBPACKAGES")
    return table


def bands(code: Code) -> Sequence[Sequence[str]]:
    """Returns the packages of `LAYERS` from the top; packages in one row are side by side."""
    layers: Sequence[Sequence[str]] = _literal(code.root, "LAYERS")
    rows = [[name for name in row if code.children(f"{PACKAGE}.{name}")] for row in reversed(layers)]
    return [row for row in rows if row]


def box_of(code: Code, table: Mapping[str, Sequence[Sequence[str]]], module: str) -> Box:
    """Returns a box with its layers, from the table or, for a package, from its imports."""
    names = code.children(module)
    if module in table:
        layers = [[f"{module}.{name}" for name in layer if f"{module}.{name}" in names] for layer in table[module]]
    elif module.count(".") == 1:
        layers = _layers(code.imports(names))
    else:
        layers = []
    docstring = ast.get_docstring(code.trees[module]) or ""
    sentence = " ".join(docstring.partition("\n\n")[0].split())
    lines = sum(code.lines[name] for name in code.within(module))
    inner = [[box_of(code, table, name) for name in layer] for layer in layers if layer]
    return Box(module, sentence, _two_digits(lines), inner)


def _two_digits(number: int) -> int:
    """Rounds, so that the picture does not change with every line."""
    return round(number, 2 - len(str(number))) if number > 99 else number


def _layers(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """Puts each box one layer above the highest that it imports; boxes in a cycle share a layer."""
    layers: list[list[str]] = []
    built: set[str] = set()
    while len(built) < len(imports):
        waiting = [box for box in imports if box not in built]
        layers.append([box for box in waiting if imports[box] <= built] or waiting)
        built.update(layers[-1])
    return [layer[start : start + WIDEST] for layer in layers for start in range(0, len(layer), WIDEST)]


def direct(edges: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Returns the edges of an acyclic graph that no longer path implies, in order."""
    reached: dict[str, set[str]] = {}

    def below(node: str) -> set[str]:
        if node not in reached:
            reached[node] = edges[node].union(*(below(target) for target in edges[node]))
        return reached[node]

    return [
        (source, target)
        for source in sorted(edges)
        for target in sorted(edges[source])
        if not any(target in below(other) for other in edges[source] - {target})
    ]


def needed(box: Box) -> tuple[float, float]:
    """Returns the minimum width and the height of a box."""
    title = len(box.name) * LETTER
    if not box.layers:
        return max(title, len(box.size) * SMALL_LETTER) + 2 * PAD, BOX_HEIGHT
    sizes = [[needed(inner) for inner in layer] for layer in box.layers]
    widths = [sum(width for width, _ in layer) + GAP * (len(layer) - 1) for layer in sizes]
    heights = [max(height for _, height in layer) for layer in sizes]
    title += len(box.size) * SMALL_LETTER + 3 * PAD
    return max(*widths, title) + 2 * PAD, HEADER + sum(heights) + LAYER_GAP * (len(heights) - 1) + PAD


class Drawing:
    """The picture as lines of SVG. Boxes hide what is behind them, so arrows come before the boxes that they connect.

    Args:
        code: The code to draw.
    """

    def __init__(self, code: Code) -> None:
        self._code = code
        self._places: dict[str, Place] = {}
        self._lines: list[str] = []

    def draw(self, box: Box, place: Place, kind: str) -> None:
        """Draws a box and its contents, as a `band`, a `group` of boxes or a `box`."""
        self._places[box.module] = place
        self._rectangle(kind, box, place)
        if not box.layers:
            middle = place.x + place.width / 2
            self._text("name", box.name, middle, place.y + 16, "middle")
            self._text("count", box.size, middle, place.y + 30, "middle")
            return
        self._text("name", box.name, place.x + PAD, place.y + 18, "start")
        self._text("count", box.size, place.x + 2 * PAD + len(box.name) * LETTER, place.y + 18, "start")
        edges = direct(self._imports_down(box))
        bottom = place.y + place.height - PAD
        for layer in box.layers:
            bottom = self._layer(layer, place, bottom, edges) - LAYER_GAP
        for source, target in edges:
            self._arrow("arrow", source, target)
        for inner in (inner for layer in box.layers for inner in layer):
            self.draw(inner, self._places[inner.module], "group" if inner.layers else "box")

    def _imports_down(self, box: Box) -> dict[str, set[str]]:
        """Returns the boxes on lower layers that each box inside this one imports."""
        layer_of = {inner.module: number for number, layer in enumerate(box.layers) for inner in layer}
        edges = self._code.imports(list(layer_of))
        return {name: {each for each in edges[name] if layer_of[each] < layer_of[name]} for name in layer_of}

    def _layer(self, layer: Sequence[Box], place: Place, bottom: float, edges: Sequence[tuple[str, str]]) -> float:
        """Places the boxes of a layer near their imports, and returns the top of the layer."""
        boxes = sorted(layer, key=lambda box: self._above(box, place, edges))
        sizes = [needed(box) for box in boxes]
        is_spread = len(boxes) > CROWD or not {box.module for box in boxes} & {source for source, _ in edges}
        space = (place.width - sum(width for width, _ in sizes)) / (len(boxes) + 1)
        x = place.x + (space if is_spread else PAD)
        behind = sum(width + GAP for width, _ in sizes)
        for box, (width, height) in zip(boxes, sizes, strict=True):
            if not is_spread:
                behind -= width + GAP
                wanted = self._above(box, place, edges) - width / 2
                x = max(x, min(wanted, place.x + place.width - PAD - behind - width))
            self._places[box.module] = Place(x, bottom - height, width, height)
            x += width + (space if is_spread else GAP)
        return bottom - max(height for _, height in sizes)

    def _above(self, box: Box, place: Place, edges: Sequence[tuple[str, str]]) -> float:
        """Returns the middle of a box's imports, or the middle of the surrounding box if it has no imports."""
        targets = [self._places[target] for source, target in edges if source == box.module]
        middles = [target.x + target.width / 2 for target in targets] or [place.x + place.width / 2]
        return sum(middles) / len(middles)

    def between(self, packages: Sequence[str]) -> None:
        """Draws the arrows between packages, starting with the public package."""
        self._arrow("between", PACKAGE, packages[0])
        for source, target in direct(self._code.imports(packages)):
            self._arrow("between", source, target)

    def _rectangle(self, kind: str, box: Box, place: Place) -> None:
        x, y, width, height = (f"{number:.1f}" for number in place)
        self._lines += [
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5">',
            f"  <title>{escape(f'{box.module}: {box.sentence}')}</title>",
            "</rect>",
        ]

    def _text(self, kind: str, text: str, x: float, y: float, anchor: str) -> None:
        self._lines.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')

    def _arrow(self, kind: str, source: str, target: str) -> None:
        """Draws an arrow from a box's lower edge to the upper edge of one below."""
        above, below = self._places[source], self._places[target]
        start = _nearest(above, below.x + below.width / 2)
        end = _nearest(below, start)
        top, bottom = above.y + above.height, below.y
        bend = min((bottom - top) / 2, 2 * LAYER_GAP)
        self._lines.append(
            f'<path class="{kind}" marker-end="url(#{kind}-head)" d="M{start:.1f} {top:.1f} '
            f'C{start:.1f} {top + bend:.1f} {end:.1f} {bottom - bend:.1f} {end:.1f} {bottom:.1f}"/>'
        )

    def text(self, height: float) -> str:
        """Returns the whole picture."""
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {height:.0f}" '
            f'width="{WIDTH}" height="{height:.0f}">',
            f"<title>The packages of {PACKAGE}, their modules and imports</title>",
            f"<style>{STYLE}</style>",
            "<defs>",
            *(_marker(name, size) for name, size in (("arrow-head", 6), ("between-head", 9))),
            "</defs>",
            f'<rect class="paper" width="{WIDTH}" height="{height:.0f}"/>',
            *self._lines,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def _nearest(place: Place, x: float) -> float:
    """Returns the position on a box's edge that is nearest to a position, but not too close to its corners."""
    inset = min(PAD, place.width / 4)
    return min(max(x, place.x + inset), place.x + place.width - inset)


def _marker(name: str, size: int) -> str:
    half = size / 2
    return (
        f'<marker id="{name}" markerUnits="userSpaceOnUse" markerWidth="{size}" markerHeight="{size}" '
        f'refX="{size}" refY="{half}" orient="auto"><path class="head" d="M0 0 L{size} {half} L0 {size} Z"/></marker>'
    )


def draw(code: Code) -> str:
    """Returns the picture of the code."""
    table = subpackages(code.root)
    packages = {name: box_of(code, table, f"{PACKAGE}.{name}") for row in bands(code) for name in row}
    inside = {box.module for box in packages.values()}
    files = [module for module in code.children(PACKAGE) if module not in inside]
    sentence = (ast.get_docstring(code.trees[PACKAGE]) or "").partition("\n")[0]
    boxes = [box_of(code, {}, module)._replace(layers=()) for module in files]
    lines = code.lines[PACKAGE] + sum(code.lines[module] for module in files)
    drawing = Drawing(code)
    y: float = MARGIN
    package = Box(PACKAGE, sentence, _two_digits(lines), [boxes])
    for row in ([package], *([packages[name] for name in names] for names in bands(code))):
        sizes = [needed(box) for box in row]
        height = max(height for _, height in sizes)
        # Distribute the remaining width equally.
        spare = (WIDTH - 2 * MARGIN - sum(width for width, _ in sizes) - BAND_GAP * (len(row) - 1)) / len(row)
        x: float = MARGIN
        for box, (width, _) in zip(row, sizes, strict=True):
            drawing.draw(box, Place(x, y, width + spare, height), "band")
            x += width + spare + BAND_GAP
        y += height + BAND_GAP
    drawing.between(sorted(inside))
    return drawing.text(y - BAND_GAP + MARGIN)


def boxes_of(package: str, code: Code) -> Iterator[Box]:
    """Yields the boxes of a package from the top down, each before those inside it."""
    pending = [box_of(code, subpackages(code.root), f"{PACKAGE}.{package}")]
    while pending:
        box = pending.pop()
        if box.module != f"{PACKAGE}.{package}":
            yield box
        pending += [inner for layer in box.layers for inner in reversed(layer)]


def lists(code: Code) -> str:
    """Returns the list of boxes: a table for each package, each box with its first sentence."""
    parts = [LISTS, "Packages and modules with the first sentence of their docstrings, from the highest layer down.\n"]
    for package in (name for names in bands(code) for name in names):
        parts.append(f"\n| in `{package}/` | |\n|---|---|\n")
        for box in boxes_of(package, code):
            name = box.module.removeprefix(f"{PACKAGE}.{package}.").replace(".", "/")
            parts.append(f"| `{name}` | {box.sentence} |\n")
    return "\n".join(parts[:2]) + "".join(parts[2:])


def page(text: str, code: Code) -> str:
    """Returns the page with current lists."""
    return text.partition(LISTS)[0] + lists(code)


if __name__ == "__main__":
    code = Code.read(ROOT)
    PICTURE.write_text(draw(code), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text("utf-8"), code), encoding="utf-8")
