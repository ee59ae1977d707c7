"""Counts the processor's instructions for five conversions, and compares them with a committed table.

    python -m benchmarks.instructions            exit status 1 if a count differs by more than 3%
    python -m benchmarks.instructions --write    record the counts of this commit

Counts don't depend on what else the machine does: two runs differ by less than a millionth, and runs in two
directories by less than a thousandth. So a change that costs one percent is seen at once, where times would need
dozens of runs. They do depend on the builds of Python and of the libraries, which the table names. Where these
differ, the commit that recorded the table is measured again, and the comparison is with that.

Valgrind counts, of whole processes: interpreter, start-up and conversion. A first run, which isn't counted, compiles
the modules. Hashes of strings and the environment are fixed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import control_flow, synthetic
from benchmarks.commands import REPOSITORY, last_line, parser_of

TABLE = Path(__file__).with_suffix(".tsv")

TOLERANCE = 0.03
"""The relative difference from which on a count is a failure; also if it is lower, so that the table stays current."""

PACKAGES = ("click", "flatbuffers", "google-crc32c", "numpy", "protobuf")
"""The packages that a conversion loads."""

_COUNTER = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
_COUNTED = re.compile(r"I +refs: +([\d,]+)")

_HEADER = "# Instructions of conversions, by python -m benchmarks.instructions --write."
_RECORDED = "# Recorded with: "


class Recorded(NamedTuple):
    """The committed table."""

    environment: str  # What the counts depend on besides the code.
    numbers: Mapping[str, int]  # The instructions of each conversion, by its name.


class Verdict(NamedTuple):
    """The comparison of one conversion with what is expected."""

    name: str  # The conversion.
    now: int  # Its instructions now.
    expected: int | None  # The instructions that it had; `None` for one that is new.

    @property
    def is_kept(self) -> bool:
        """Whether the count is within the tolerance."""
        return self.expected is not None and abs(self.now - self.expected) <= TOLERANCE * self.expected

    def row(self) -> str:
        """Returns a row of the table for readers."""
        change = "new" if self.expected is None else f"{self.now / self.expected - 1:+.2%}"
        return f"| {self.name} | {self.now / 1e6:.1f} M | {change}{'' if self.is_kept else ' (!)'} |"


def environment() -> str:
    """Returns what the counts depend on besides the code: the builds of Python, of the libraries and of the counter."""
    done = subprocess.run([_COUNTER[0], "--version"], capture_output=True, text=True, check=True)
    build = f"{sys.version} {sysconfig.get_config_var('CONFIG_ARGS')}"
    return ", ".join(
        (
            f"Python {platform.python_version()} (build {hashlib.sha256(build.encode()).hexdigest()[:8]})",
            *(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES),
            " ".join(platform.libc_ver()),
            platform.machine(),
            done.stdout.strip(),
        )
    )


def write_models(folder: Path) -> dict[str, list[str]]:
    """Writes the models into a folder; returns the arguments of each conversion, without the output."""
    for shape in ("deep", "wide"):
        synthetic.write(shape, 2000, folder / f"{shape}.pb")
    loops = control_flow.loops(25)
    (folder / "loops.pb").write_bytes(loops.SerializeToString(deterministic=True))
    digits = str(REPOSITORY / "examples" / "digits" / "saved_model")
    ends = ["--input", synthetic.INPUT, "--output", synthetic.OUTPUT]
    return {
        "digits": [digits],
        "digits to StableHLO": [digits, "--target", "stablehlo"],
        "deep": [str(folder / "deep.pb"), *ends],
        "wide": [str(folder / "wide.pb"), *ends],
        "loops": [str(folder / "loops.pb"), "--input", control_flow.INPUT, "--output", control_flow.OUTPUT],
    }


def count(tree: Path, conversion: Sequence[str], folder: Path) -> int:
    """Returns the instructions of a conversion.

    Args:
        tree: The directory with the package to run.
        conversion: The arguments, without the output.
        folder: A directory for the output and the compiled modules.

    Raises:
        RuntimeError: The conversion failed, or the counter doesn't understand its options.
    """
    compiled = folder / "compiled"
    command = [sys.executable, "-m", "tfconvert", *conversion, "-o", str(folder / "output"), "--quiet"]
    fixed = {
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "PATH": os.defpath,
        "PYTHONHASHSEED": "0",
        "PYTHONPYCACHEPREFIX": str(compiled),
    }
    for counter, variables in (((), {}), (_COUNTER, {"PYTHONDONTWRITEBYTECODE": "1"})):
        done = subprocess.run(
            [*counter, *command], cwd=tree, env={**fixed, **variables}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {last_line(done.stderr)}")
    found = _COUNTED.search(done.stderr)
    if found is None:
        raise RuntimeError(f"{_COUNTER[0]} reports no count: {last_line(done.stderr)}")
    return int(found[1].replace(",", ""))


def counts(tree: Path) -> dict[str, int]:
    """Returns the instructions of each conversion by the package in a directory."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        return {name: count(tree, arguments, folder) for name, arguments in write_models(folder).items()}


def read_table(text: str) -> Recorded:
    """Returns the contents of a table."""
    recorded, found = "", {}
    for line in text.splitlines():
        if line.startswith(_RECORDED):
            recorded = line.removeprefix(_RECORDED)
        elif line and not line.startswith("#"):
            name, number = line.split("\t")
            found[name] = int(number)
    return Recorded(recorded, found)


def table_text(recorded: Recorded) -> str:
    """Returns a table as `read_table` reads it."""
    rows = (f"{name}\t{number}" for name, number in recorded.numbers.items())
    return "\n".join([_HEADER, _RECORDED + recorded.environment, *rows, ""])


def compared(now: Mapping[str, int], expected: Mapping[str, int]) -> list[Verdict]:
    """Returns the verdict on each conversion."""
    return [Verdict(name, number, expected.get(name)) for name, number in now.items()]


def recorded_commit() -> str:
    """Returns the commit that recorded the table.

    Raises:
        RuntimeError: The history isn't there.
    """
    command = ["git", "log", "-1", "--format=%H", "--", str(TABLE.relative_to(REPOSITORY))]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.strip():
        raise RuntimeError("the history doesn't have the commit that recorded the table; record it here with --write")
    return done.stdout.strip()


def counts_at(commit: str) -> dict[str, int]:
    """Returns the instructions of each conversion by the package of a commit.

    Raises:
        RuntimeError: The history doesn't have its files.
    """
    done = subprocess.run(["git", "archive", commit, "tfconvert"], cwd=REPOSITORY, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git can't extract {commit}: {last_line(done.stderr.decode())}")
    with tempfile.TemporaryDirectory() as temporary:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(temporary, filter="data")
        return counts(Path(temporary))


def expected_counts(recorded: Recorded) -> Mapping[str, int]:
    """Returns the counts that the table's code has in this environment: the table's, or measured again."""
    if recorded.environment == environment():
        return recorded.numbers
    commit = recorded_commit()
    print(f"The table was recorded with other versions than these: measuring its commit, {commit[:8]}, again.")
    return counts_at(commit)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("instructions", __doc__)
    parser.add_argument("--write", action="store_true", help="record the counts instead of comparing them")
    options = parser.parse_args(arguments)
    if shutil.which(_COUNTER[0]) is None:
        print(f"{_COUNTER[0]} is not installed: nothing can be counted", file=sys.stderr)
        return 1
    try:
        now = counts(REPOSITORY)
        if options.write:
            TABLE.write_text(table_text(Recorded(environment(), now)))
            return 0
        verdicts = compared(now, expected_counts(read_table(TABLE.read_text())))
    except RuntimeError as problem:
        print(problem, file=sys.stderr)
        return 1
    print("| conversion | instructions | change |\n| --- | ---: | ---: |")
    print("\n".join(verdict.row() for verdict in verdicts))
    if all(verdict.is_kept for verdict in verdicts):
        return 0
    print(
        f"(!) differs by more than {TOLERANCE:.0%}. If that is what the change is for, record it: --write",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
