"""Checks that a built wheel has every source and data file of our package, and nothing else.

Run as `python .ci/check_wheel.py WHEEL` from the repository's root.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Set
from pathlib import Path

PACKAGE = "tfconvert"
# Where the manual page is installed, below the prefix of the environment.
MAN_PAGE = "share/man/man1/tfconvert.1"


def main() -> int:
    """Compares the file names in the wheel with git's. Returns the exit status."""
    with zipfile.ZipFile(Path(sys.argv[1])) as wheel:
        names = (name for name in wheel.namelist() if ".dist-info/" not in name)
        packed = {name.rpartition(".data/data/")[2] for name in names}
    listing = subprocess.run(["git", "ls-files", "-z", PACKAGE], check=True, capture_output=True, text=True).stdout
    tracked = {name for name in listing.split("\0") if name} | {MAN_PAGE}
    return difference(packed, tracked, "wheel")


def difference(packed: Set[str], tracked: Set[str], what: str) -> int:
    """Reports how the files in a distribution differ from git's. Returns the exit status.

    Args:
        packed: The file names in the distribution.
        tracked: The expected names.
        what: The kind of the distribution.
    """
    for title, names in ((f"missing in the {what}", tracked - packed), ("must not be included", packed - tracked)):
        for name in sorted(names):
            print(f"{title}: {name}", file=sys.stderr)
    print(f"{len(packed)} files in the {what}, {len(tracked)} tracked")
    return int(packed != tracked)


if __name__ == "__main__":
    sys.exit(main())
