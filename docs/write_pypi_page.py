"""Writes docs/pypi.md, the page for package indexes: the README without what is only useful in the repository.

python docs/write_pypi_page.py
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent / "pypi.md"

_README = PAGE.parent.parent / "README.md"
# Sections about the repository.
_LEFT_OUT = ("Install", "Develop")

_INSTALL = """## Install

```sh
pip install tfconvert              # Python 3.11 or later; no TensorFlow
pip install 'tfconvert[verify]'    # to also check results in LiteRT
```

The source distribution includes the documents that this page names, and the example.

"""


def page() -> str:
    """Returns the text of the page."""
    head, *sections = re.split(r"^(?=## )", _README.read_text("utf-8"), flags=re.MULTILINE)
    kept = [section for section in sections if section[3:].partition("\n")[0] not in _LEFT_OUT]
    return _without_relative_links(head + _INSTALL + "".join(kept)).rstrip("\n") + "\n"


def _without_relative_links(text: str) -> str:
    """Replaces relative links in Markdown by their text, and removes relative images, except in code."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    for index in range(0, len(parts), 2):
        plain = re.sub(r"^!\[[^\]]*\]\((?!https://)[^)]*\)\n+", "", parts[index], flags=re.MULTILINE)
        plain = re.sub(r"\(\[[^\]]*\]\((?!https://)([^)#]+)[^)]*\)\)", r"(`\1`)", plain)
        parts[index] = re.sub(r"\[([^\]]*)\]\((?!https://)([^)]*)\)", _as_text, plain)
    return "".join(parts)


def _as_text(link: re.Match[str]) -> str:
    """Returns the text of a link, and its file unless the text names it."""
    text, file = link[1], link[2].partition("#")[0]
    return text if not file or file in text else f"{text} (`{file}`)"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
