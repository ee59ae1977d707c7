"""Checks a built wheel: every source and data file of our package is in it, and nothing else is.

Run as `python .ci/check_wheel.py WHEEL` from the repository's root.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = "tfconvert"


def main() -> int:
    """Compares the wheel's names with git's; returns the exit status."""
    with zipfile.ZipFile(Path(sys.argv[1])) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    listing = subprocess.run(["git", "ls-files", "-z", PACKAGE], check=True, capture_output=True, text=True).stdout
    tracked = {name for name in listing.split("\0") if name}
    for title, names in (("missing in the wheel", tracked - packed), ("not ours to install", packed - tracked)):
        for name in sorted(names):
            print(f"{title}: {name}", file=sys.stderr)
    print(f"{len(packed)} files in the wheel, {len(tracked)} tracked")
    return int(packed != tracked)


if __name__ == "__main__":
    sys.exit(main())
