"""Checks a built source distribution: its contents, and that it gives the same wheel as the repository.

Run as `python .ci/check_sdist.py SDIST` from the repository's root.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from check_wheel import difference

# Files that setuptools adds.
BUILT = ("PKG-INFO", "setup.cfg", "tfconvert.egg-info/")
# Files of the repository that a source distribution contains.
KEPT = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "docs/",
    "examples/",
    "pyproject.toml",
    "tfconvert/",
)


def main() -> int:
    """Compares the file names with git's, then those of the wheel built from it. Returns the exit status."""
    sdist = Path(sys.argv[1])
    with tarfile.open(sdist) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}
    packed = {name for name in packed if not name.startswith(BUILT)}
    listing = subprocess.run(["git", "ls-files", "-z", *KEPT], check=True, capture_output=True, text=True).stdout
    scripts = {name for name in listing.split("\0") if name.startswith("docs/") and name.endswith(".py")}
    status = difference(packed, {name for name in listing.split("\0") if name} - scripts, "source distribution")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
        subprocess.run([*command, "--wheel-dir", folder, sdist], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        return status | subprocess.run([sys.executable, ".ci/check_wheel.py", wheel], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
