"""The official project's own tests of its class, one by one: which pass here, and why the others don't.

`official_tests.tsv` has the verdicts. They come from running the tests, in which only the imports are replaced.
`official_reasons.toml` has the reasons, written by hand. Run as a module, this writes the page
docs/tflite_converter_tests.md with the stored verdicts, or with new ones from a checkout of LiteRT's repository:

python -m tests.compat.official_tests
python -m tests.compat.official_tests --run FOLDER
python -m tests.compat.official_tests --run FOLDER --official
python -m tests.compat.official_tests --run FOLDER --file lite_test
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

from tests.compat.official_run import FILES
from tests.support.sources import ROOT

Stance = Literal["exceeds", "differs", "refused", "missing"]

VERDICTS = Path(__file__).with_name("official_tests.tsv")
REASONS = Path(__file__).with_name("official_reasons.toml")
PAGE = ROOT / "docs" / "tflite_converter_tests.md"

OLD, NEW = "tf_keras", "Keras 3"
RUNS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(FILES, (OLD,)),
    **dict.fromkeys(("lite_v2_test", "lite_test", "lite_flex_test"), (OLD, NEW)),
    "keras_litert_test": (NEW,),
}
"""The Kerases that the tests of each file are run with."""


class Row(NamedTuple):
    """A test.

    Attributes:
        file: The file that it is in, one of `FILES`.
        test: Its class and its name.
        keras: The Keras that it ran with.
        official: Its verdict on the official class: `ok`, `fail`, or `crash` if the process ended.
        ours: Its verdict on this project's.
    """

    file: str
    test: str
    keras: str
    official: str
    ours: str

    @property
    def counts(self) -> bool:
        """Whether the official class passes it."""
        return self.official == "ok"

    @property
    def differs(self) -> bool:
        """Whether the official class passes it, and this project's doesn't."""
        return self.counts and self.ours != "ok"


class Reason(NamedTuple):
    """Why tests fail here.

    Attributes:
        stance: Whether this project does more (`exceeds`), something else, refuses what they need, or lacks it.
        text: Why.
        tests: Patterns of the tests' files, names and Kerases: `lite_test *.testGraphviz *`.
    """

    stance: Stance
    text: str
    tests: tuple[str, ...]

    def holds_for(self, row: Row) -> bool:
        """Returns whether a test fails for this reason."""
        return any(fnmatchcase(f"{row.file} {row.test} {row.keras}", pattern) for pattern in self.tests)


def rows() -> list[Row]:
    """Returns the tests with their verdicts."""
    with VERDICTS.open(encoding="utf-8", newline="") as stream:
        return [Row(**each) for each in csv.DictReader(stream, delimiter="\t")]


def reasons() -> list[Reason]:
    """Returns the reasons; the first one that holds for a test is its reason."""
    found = tomllib.loads(REASONS.read_text("utf-8"))["reason"]
    return [Reason(each["stance"], each["text"], tuple(each["tests"])) for each in found]


def reason_of(row: Row, known: Iterable[Reason]) -> Reason | None:
    """Returns why a test fails, `None` if nobody has looked yet."""
    return next((each for each in known if each.holds_for(row)), None)


_HEAD = """# The official tests of the class

The official project's own tests of its class and related interfaces (LiteRT's repository, `tflite/python`), and those
of Keras's export to LiteRT, run unchanged on this project's class: only their imports are replaced. `python -m
tests.compat.official_tests --run FOLDER` repeats this from a checkout of LiteRT, and writes this page. Tests that the
official class doesn't pass in the same environment, because no package includes a file or a compiled module, are not
counted.

This project's own tests also check the kinds of models and settings that these tests use
(`tests/compat/test_official_kinds.py`, `test_flex_kinds.py`).

| tests | Keras | the official class passes | of these pass here | only here |
| --- | --- | ---: | ---: | ---: |
"""

_STANCES: Mapping[Stance, str] = {
    "exceeds": "More is possible here",
    "differs": "Another choice",
    "refused": "Refused, with a hint",
    "missing": "Not there yet",
}


def page(found: Sequence[Row]) -> str:
    """Returns the tests as a page."""
    known = reasons()
    return "".join((_HEAD, *_summary(found), *_why(found, known), *_files(found, known)))


def _summary(found: Sequence[Row]) -> Iterator[str]:
    for (file, keras), group in groupby(found, lambda row: (row.file, row.keras)):
        own = list(group)
        passed = [row for row in own if row.ours == "ok"]
        both = sum(row.counts for row in passed)
        yield f"| `{file}` | {keras} | {sum(row.counts for row in own)} | {both} | {len(passed) - both} |\n"


def _why(found: Sequence[Row], known: Sequence[Reason]) -> Iterator[str]:
    counts = Counter(reason_of(row, known) for row in found if row.differs)
    yield "\n## Why others don't\n\n| tests | | why |\n| ---: | --- | --- |\n"
    for reason in known:
        if counts[reason]:
            yield f"| {counts[reason]} | {_STANCES[reason.stance].lower()} | {reason.text} |\n"


def _files(found: Sequence[Row], known: Sequence[Reason]) -> Iterator[str]:
    for file in FILES:
        own = [row for row in found if row.file == file and row.counts]
        for name, group in groupby(sorted(own, key=lambda row: row.test), lambda row: row.test.partition(".")[0]):
            yield f"\n## {file}: {name}\n"
            yield from _group(list(group), known)


def _group(own: Sequence[Row], known: Sequence[Reason]) -> Iterator[str]:
    """Yields the tests of a class: those that pass in a sentence, the others in a table."""
    differing = [row for row in own if row.differs]
    failing = {row.test for row in differing}
    names = dict.fromkeys(row.test.partition(".")[2] for row in own if row.test not in failing)
    if names:
        yield f"\nPass: {', '.join(f'`{name}`' for name in names)}.\n"
    if differing:
        yield "\n| doesn't pass | with | why |\n| --- | --- | --- |\n"
    for test, group in groupby(differing, lambda row: row.test):
        runs = list(group)
        texts = dict.fromkeys(
            "not known yet" if why is None else why.text for why in (reason_of(row, known) for row in runs)
        )
        yield f"| `{test.partition('.')[2]}` | {', '.join(row.keras for row in runs)} | {'; '.join(texts)} |\n"


def run(folder: str, official: bool, files: Sequence[str] = ()) -> list[Row]:
    """Returns the tests with verdicts of now.

    Args:
        folder: The official project's sources.
        official: Whether the official class runs, too; else its verdicts stay as they are.
        files: The files whose tests run; all of them if empty.
    """
    known = rows() if VERDICTS.exists() else []
    before = {(row.file, row.test, row.keras): row.official for row in known}
    found = []
    for file, kerases in RUNS.items():
        if files and file not in files:
            found += [row for row in known if row.file == file]
            continue
        for keras in kerases:
            theirs = _verdicts("theirs", folder, file, keras) if official else {}
            for test, ours in _verdicts("ours", folder, file, keras).items():
                verdict = theirs.get(test) if official else before.get((file, test, keras))
                if "skip" not in (ours, verdict):
                    found.append(Row(file, test, keras, verdict or "fail", ours))
    return found


def _verdicts(who: str, folder: str, file: str, keras: str) -> dict[str, str]:
    """Returns the verdicts on the tests of a file, which are run in further processes if they end the first."""
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": str(int(keras == OLD)), "TF_CPP_MIN_LOG_LEVEL": "3"}
    found: dict[str, str] = {}
    while True:
        with tempfile.TemporaryDirectory() as place:
            output = Path(place, "verdicts")
            command = [sys.executable, "-W", "ignore", "-m", "tests.compat.official_run", who, folder, file]
            ended = subprocess.run(
                [*command, os.fspath(output), *found], env=environment, capture_output=True, text=True, check=False
            )
            lines = output.read_text("utf-8").splitlines() if output.exists() else []
        table = [json.loads(line) for line in lines]
        done = {row[0]: row[1] for row in table if len(row) > 1}
        found |= done
        if ended.returncode == 0:
            break
        if not table:
            raise SystemExit(f"{file} can't be run: {ended.stderr[-2000:]}")
        # A test that ends the process where others ran before it gets another one of its own.
        if not done:
            found[table[-1][0]] = "crash"
    print(who, file, keras, dict(Counter(found.values())), flush=True)
    return found


def write(found: Iterable[Row]) -> None:
    """Writes the verdicts."""
    with VERDICTS.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(found)


def main() -> None:
    """Writes the page, and with `--run` the verdicts before it."""
    parser = ArgumentParser()
    parser.add_argument("--run", metavar="FOLDER")
    parser.add_argument("--official", action="store_true")
    parser.add_argument("--file", choices=FILES, action="append", default=[])
    arguments = parser.parse_args()
    if arguments.run is not None:
        write(run(arguments.run, arguments.official, arguments.file))
    found, known = rows(), reasons()
    PAGE.write_text(page(found), "utf-8")
    for row in found:
        if row.differs and reason_of(row, known) is None:
            print("no reason:", row.file, row.test, row.keras)


if __name__ == "__main__":
    main()
