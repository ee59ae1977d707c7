"""Converts random mutants of artifacts within limits: each is converted or refused, without another exception.

    python -m tests.differential.artifact_mutants --count 20000 [FILE...]

The artifacts are those of the tests, and the files that are named.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import tfconvert
from tests.importers.stablehlo.seeds import SEEDS
from tfconvert.importers.stablehlo.artifact import import_artifact
from tfconvert.schema.diagnostics import ConversionError

# Bytes of address space, and seconds of processor time for one mutant.
MEMORY = 2 << 30
SECONDS = 20

_NOTABLE = (0, 1, 2, 3, 5, 0x7F, 0x80, 0xFE, 0xFF)


def mutant(seeds: Sequence[bytes], number: int) -> bytes:
    """Returns a mutant; equal numbers give equal ones."""
    draw = random.Random(number)
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        _mutate(draw, data)
    return bytes(data)


def _mutate(draw: random.Random, data: bytearray) -> None:
    place, other = draw.randrange(len(data)), draw.randrange(len(data))
    length = draw.randrange(1, 9)
    kind = draw.randrange(6)
    if kind == 0:
        data[place] = draw.randrange(256)
    elif kind == 1:
        data[place] ^= 1 << draw.randrange(8)
    elif kind == 2:
        data[place] = draw.choice(_NOTABLE)
    elif kind == 3:
        data[place : place + length] = data[other : other + length]
    elif kind == 4 and len(data) > 2 * length:
        del data[place : place + length]
    else:
        data[place:place] = draw.randbytes(length)


def convert(data: bytes, path: Path) -> str:
    """Returns what converting it comes to: `converted`, or the code of the error; all that is lazy is read too."""
    try:
        module = import_artifact(data, "mutant.mlirbc")
        for op in module.walk():
            assert str(op.location)
        assert str(module)
        path.write_bytes(data)
        tfconvert.convert(path)
    except ConversionError as problem:
        return problem.code
    return "converted"


def run(seeds: Sequence[bytes], numbers: Iterable[int], folder: Path) -> Counter[str]:
    """Returns how often converting came to what; the mutants are written to a directory."""
    counts: Counter[str] = Counter()
    for number in numbers:
        start = time.process_time()
        try:
            counts[convert(mutant(seeds, number), folder / "mutant.mlirbc")] += 1
        except Exception as problem:
            problem.add_note(f"mutant {number}")
            raise
        taken = time.process_time() - start
        assert taken < SECONDS, f"mutant {number} took {taken:.1f} s"
    return counts


def main() -> None:
    """Converts as many mutants as the command line states."""
    parser = argparse.ArgumentParser(description="Converts random mutants of artifacts.")
    parser.add_argument("--count", type=int, default=20_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one's number")
    parser.add_argument("files", type=Path, nargs="*", help="further artifacts")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    seeds = [*SEEDS.values(), *(path.read_bytes() for path in arguments.files)]
    with tempfile.TemporaryDirectory() as folder:
        counts = run(seeds, range(arguments.first, arguments.first + arguments.count), Path(folder))
    for what, count in counts.most_common():
        print(f"{count:9} {what}")


if __name__ == "__main__":
    main()
