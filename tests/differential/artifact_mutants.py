"""Converts random mutants of StableHLO within limits: each is converted or refused, without another exception.

    python -m tests.differential.artifact_mutants --count 20000 [--text] [FILE...]

The artifacts are those of the tests, and the files that are named; with `--text` they are MLIR texts. A mutant's number
determines what it is made of and the settings that it is converted with. LiteRT opens a sample of the results, and
StableHLO is read again.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import signal
import tempfile
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any

import tfconvert
from tests.importers.stablehlo.seeds import SEEDS
from tests.importers.stablehlo.texts import TEXTS
from tests.mutate import numbers, tokens
from tests.mutate.litert import LiteRT
from tests.mutate.worker import NOT_EXPLAINED, where
from tfconvert.importers.mlir import import_mlir
from tfconvert.importers.stablehlo.artifact import import_artifact, is_artifact
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER, read_model

# Bytes of address space, and seconds of processor time for one mutant.
MEMORY = 2 << 30
SECONDS = 20

# The keyword arguments of conversions, in turn.
SETTINGS: Sequence[Mapping[str, Any]] = (
    {},
    {"batch": 1},
    {"quantize": "dynamic"},
    {"target": tfconvert.StableHLO()},
    {"target": tfconvert.LiteRT(accelerator=["gpu"])},
)

# Codes that stand for mistakes of our own: what runs out of memory asks for more than the file is worth.
_NOT_EXPLAINED = NOT_EXPLAINED | {"out-of-memory"}

# Up to how many elements of all tensors together LiteRT opens a result.
_MAX_ELEMENTS = 1 << 24

_NOTABLE = (0, 1, 2, 3, 5, 0x7F, 0x80, 0xFE, 0xFF)

_CHANGES = (1, 1, 1, 2, 4, 16)

Mutant = Callable[[Sequence[bytes], int], bytes]


class _TooSlow(BaseException):
    """A mutant takes too long."""


@dataclass(slots=True)
class Summary:
    """The outcomes of mutants.

    Attributes:
        counts: How many were converted, or refused with which code.
        opened: How many results LiteRT opened.
        failures: The numbers of the others, by the exception and where it was raised.
        details: The traceback of the first of each group.
    """

    counts: Counter[str] = field(default_factory=Counter)
    opened: int = 0
    failures: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    details: dict[str, str] = field(default_factory=dict)

    def fail(self, number: int, group: str, detail: str = "") -> None:
        """Adds a failure."""
        self.failures[group].append(number)
        self.details.setdefault(group, detail)


def mutant(seeds: Sequence[bytes], number: int) -> bytes:
    """Returns a mutant of an artifact; equal numbers give equal ones."""
    draw = random.Random(number)
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.choice(_CHANGES)):
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


def text_mutant(seeds: Sequence[bytes], number: int) -> bytes:
    """Returns a mutant of a text; equal numbers give equal ones."""
    draw = random.Random(number)
    text, other = (draw.choice(seeds).decode() for _ in range(2))
    for _ in range(draw.choice(_CHANGES)):
        kind = draw.randrange(4)
        if kind == 0:
            text = _change_everywhere(draw, text)
        elif kind == 1:
            text = _change_number(draw, text)
        else:
            text = tokens.mutate(draw, text, other)
    return text.encode("utf-8", "replace")


_TYPE = re.compile(r"tensor<(?:[\d?]+x)*[\w!.]+(?:<[^<>\n]*>)?>")
_PART = re.compile(r"[\d?]+(?=x)|(?<=[<x])[a-z]\w*(?:<\w+>)?(?=>)")
_NUMBER = re.compile(r"(?<=[\[ ])-?\d+(?=[],>} ])")
_ELEMENTS = (
    "f32",
    "f16",
    "bf16",
    "f64",
    "i1",
    "i4",
    "i8",
    "i32",
    "i64",
    "ui8",
    "ui32",
    "index",
    "complex<f32>",
    "f8E4M3FN",
)
_SIZES = ("?", "0", "1", "2", "3", "7", "64", "65536", "2147483647", "2147483648", "9223372036854775807")


def _change_everywhere(draw: random.Random, text: str) -> str:
    """Returns a text with a size or the element type of one type changed wherever it occurs."""
    kinds = _TYPE.findall(text)
    if not kinds:
        return text
    old = draw.choice(kinds)
    parts = list(_PART.finditer(old))
    if not parts:
        return text
    part = draw.choice(parts)
    new = draw.choice(_ELEMENTS if part[0][0].isalpha() else _SIZES)
    return text.replace(old, old[: part.start()] + new + old[part.end() :])


def _change_number(draw: random.Random, text: str) -> str:
    """Returns a text with another number in an attribute or a constant."""
    places = list(_NUMBER.finditer(text))
    if not places:
        return text
    place = draw.choice(places)
    number = numbers.integer(draw, -(2**63), 2**63 - 1, int(place[0]))
    return f"{text[: place.start()]}{number}{text[place.end() :]}"


def _convert(data: bytes, path: Path, settings: Mapping[str, Any]) -> bytes:
    """Converts a mutant; all that is lazy is read too."""
    if is_artifact(data):
        module = import_artifact(data, path.name)
        for op in module.walk():
            assert str(op.location)
        assert str(module)
    path.write_bytes(data)
    return bytes(tfconvert.convert(path, **settings))


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(
    seeds: Sequence[bytes], chosen: Iterable[int], folder: Path, draw: Mutant = mutant, *, open_every: int = 0
) -> Summary:
    """Converts mutants, which are written to a directory.

    Args:
        seeds: The files that they are made of.
        chosen: The mutants' numbers.
        folder: The directory.
        draw: Returns a mutant by its number.
        open_every: Every which result LiteRT opens, in another process; 0 for none.
    """
    summary = Summary()
    path = folder / ("mutant.mlir" if draw is text_mutant else "mutant.mlirbc")
    with LiteRT() as litert:
        for number in chosen:
            settings = SETTINGS[number % len(SETTINGS)]
            with _Attempt(summary, number), _time_limit():
                content = _convert(draw(seeds, number), path, settings)
                summary.counts["converted"] += 1
                if content[4:8] != TFLITE_IDENTIFIER:
                    _read(content, number, summary)
                elif open_every and summary.counts["converted"] % open_every == 0 and _can_be_opened(content):
                    _open(litert, content, folder / "mutant.tflite", number, summary)
    return summary


class _Attempt:
    """A context that counts what an error refuses a mutant for; other exceptions are failures."""

    def __init__(self, summary: Summary, number: int) -> None:
        self._summary = summary
        self._number = number

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Counts the exception, unless the campaign is to end."""
        if isinstance(problem, ConversionError):
            self._summary.counts[problem.code] += 1
            if _NOT_EXPLAINED.intersection(each.code for each in problem.diagnostics):
                self._summary.fail(self._number, str(problem)[:200], str(problem))
        elif isinstance(problem, Exception | _TooSlow):
            self._summary.fail(self._number, where(problem), "".join(traceback.format_exception(problem)))
        return isinstance(problem, Exception | _TooSlow)


def _can_be_opened(content: bytes) -> bool:
    """Returns whether the sizes in a file for LiteRT are fixed and small: others may need sizes above 1."""
    tensors = [tensor for graph in read_model(content).tree()["subgraphs"] for tensor in graph.get("tensors", ())]
    elements = sum(prod(tensor.get("shape", ())) for tensor in tensors)
    return elements <= _MAX_ELEMENTS and not any("shape_signature" in tensor for tensor in tensors)


def _read(content: bytes, number: int, summary: Summary) -> None:
    """Reads StableHLO that was written."""
    try:
        import_mlir(content.decode(), "result.mlir")
    except ConversionError as problem:
        summary.fail(number, f"result: {problem.code}", str(problem))


def _open(litert: LiteRT, content: bytes, path: Path, number: int, summary: Summary) -> None:
    path.write_bytes(content)
    problem = litert.problem(path)
    if problem:
        summary.fail(number, f"LiteRT: {problem[:150]}", problem)
    else:
        summary.opened += 1


def main() -> None:
    """Converts as many mutants as the command line states."""
    parser = argparse.ArgumentParser(description="Converts random mutants of StableHLO.")
    parser.add_argument("--count", type=int, default=20_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one's number")
    parser.add_argument("--text", action="store_true", help="of texts instead of artifacts")
    parser.add_argument("--open-every", type=int, default=10, help="every which result LiteRT opens")
    parser.add_argument("files", type=Path, nargs="*", help="further artifacts, or texts")
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    own = [text.encode() for text in TEXTS.values()] if arguments.text else list(SEEDS.values())
    seeds = [*own, *(path.read_bytes() for path in arguments.files)]
    chosen = range(arguments.first, arguments.first + arguments.count)
    with tempfile.TemporaryDirectory() as folder:
        draw = text_mutant if arguments.text else mutant
        summary = run(seeds, chosen, Path(folder), draw, open_every=arguments.open_every)
    for what, count in summary.counts.most_common():
        print(f"{count:9} {what}")
    print(f"{summary.opened:9} opened in LiteRT")
    for group, failed in summary.failures.items():
        print(f"\n{len(failed)} x {group}, mutants {failed[:5]}\n{summary.details[group]}")
    if summary.failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
