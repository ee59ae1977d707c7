"""Draws docs/service.svg: the parts of a server of the conversion service, and what servers share.

python docs/draw_service.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

PICTURE = Path(__file__).resolve().parent / "service.svg"
WIDTH, HEIGHT = 960, 460
_LINE = 18


class Box(NamedTuple):
    """A box with a title and lines below it.

    Attributes:
        x: Its left side.
        y: Its top.
        width: Its width.
        height: Its height.
        title: Its title.
        lines: Its description.
        kind: `part`, or `group` for a box that contains others.
    """

    x: int
    y: int
    width: int
    height: int
    title: str
    lines: tuple[str, ...] = ()
    kind: str = "part"


BOXES = (
    Box(20, 20, 200, 110, "Clients", ("the page in a browser", "curl", "tfconvert.Client", "tfconvert --server")),
    Box(280, 20, 660, 260, "A server: tfconvert serve", (), "group"),
    Box(300, 60, 180, 90, "HTTP", ("tokens, roles, quotas", "uploads to the disk", "events, results")),
    Box(300, 175, 180, 90, "Worker threads", ("claim, unpack, follow", "renew the lease", "store the result")),
    Box(520, 60, 180, 90, "Zygote", ("has everything loaded", "has no threads", "forks for each job")),
    Box(520, 175, 180, 90, "Janitor", ("jobs of dead servers", "unreferenced files", "expired jobs")),
    Box(
        740,
        60,
        180,
        130,
        "A process per job",
        (
            "limits: time, memory",
            "files and output",
            "reads only its directory",
            "ends with the job",
            "dies with its server",
        ),
    ),
    Box(
        280,
        340,
        300,
        100,
        "Database",
        ("SQLite in the data directory, or", "PostgreSQL for several servers:", "jobs, leases, tokens (hashed)"),
    ),
    Box(
        640,
        340,
        300,
        100,
        "Data directory",
        ("models by the digest of their bytes", "results, written atomically", "events of each job"),
    ),
    Box(20, 340, 200, 100, "More servers", ("share both", "take over jobs of", "dead servers")),
)
ARROWS = (
    ((220, 80), (300, 100)),
    ((390, 150), (390, 175)),
    ((480, 195), (520, 130)),
    ((700, 105), (740, 105)),
    ((390, 265), (400, 340)),
    ((570, 265), (530, 340)),
    ((650, 265), (700, 340)),
    ((830, 190), (820, 340)),
    ((220, 390), (280, 390)),
)

_STYLE = """
  svg { font: 14px system-ui, sans-serif; --ink: #1f2430; --soft: #5b6478; --fill: #eef1f8; --edge: #8c97b2; }
  @media (prefers-color-scheme: dark) { svg { --ink: #e7eaf3; --soft: #aab3c7; --fill: #2a3040; --edge: #6d7892; } }
  rect { fill: var(--fill); stroke: var(--edge); } .group { fill: none; stroke-dasharray: 5 4; }
  text { fill: var(--soft); } .title { fill: var(--ink); font-weight: 600; }
  path { stroke: var(--edge); fill: none; stroke-width: 1.5; marker-end: url(#end); } marker path { fill: var(--edge); }
"""


def draw() -> str:
    """Returns the picture."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>The parts of the conversion service</title>",
        f"<style>{_STYLE}</style>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 8 4 0 8z" style="marker-end: none"/></marker></defs>',
    ]
    for box in BOXES:
        parts.append(
            f'<rect class="{box.kind}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="8"/>'
        )
        parts.append(f'<text class="title" x="{box.x + 14}" y="{box.y + 26}">{escape(box.title)}</text>')
        parts += [
            f'<text x="{box.x + 14}" y="{box.y + 26 + _LINE * (number + 1)}">{escape(line)}</text>'
            for number, line in enumerate(box.lines)
        ]
    parts += [f'<path d="M{begin[0]} {begin[1]} L{end[0]} {end[1]}"/>' for begin, end in ARROWS]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
