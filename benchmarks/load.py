"""Many clients at once against the conversion service, and against a process per job.

    python -m benchmarks.load                                   # a server of its own, MobileNetV3Small, 50 clients
    python -m benchmarks.load --server http://host:8750 --token-file token --model saved_model
    python -m benchmarks.load --seconds 20 --baseline-seconds 20 --json load.json

No two models have equal contents, but for every tenth, which was sent before and is answered by the cache. What is said
to be accepted must be there at the end, once, and every result must be the same file. A process per job is measured in
turns with the service: our own command, and the official converter, as many at once as there are cores.

Two ratios are told: that of throughputs, and that of the processor's seconds for a model. The clients run on the same
machine, take their share of its cores, and would not in earnest: the second ratio leaves them out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.commands import parser_of
from benchmarks.load_clients import Load, Outcome
from benchmarks.measure import child_environment
from benchmarks.zoo import default_cache, make, select

_MODEL = "MobileNetV3Small"
_START = 60.0
# How many times as many models the service should convert as a process per job does.
_GOALS = {"own": 3.0, "official": 10.0}


@contextmanager
def server_of_its_own(folder: Path, cores: int) -> Iterator[tuple[str, int]]:
    """Starts a server; yields its URL and the number of its process.

    Args:
        folder: Where its data go.
        cores: How many jobs it runs at once.
    """
    command = [
        sys.executable,
        "-m",
        "tfconvert",
        "serve",
        "--port",
        "0",
        "--data",
        str(folder / "data"),
        "--workers",
        str(cores),
    ]
    # Everybody here is one owner.
    settings = {"TFCONVERT_SERVICE_PER_MINUTE": "1000000", "TFCONVERT_SERVICE_MAX_ACTIVE": "1000"}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env={**child_environment(), **settings})
    assert process.stdout is not None
    try:
        line = process.stdout.readline().decode()
        if "http" not in line:
            raise RuntimeError(f"the server does not start: {(folder / 'server.log').read_text()}")
        yield line[line.index("http") :].strip(), process.pid
    finally:
        process.terminate()
        process.wait(_START)
        process.stdout.close()


def _read_tree(process: int, name: str) -> Iterator[str]:
    """Yields a file of /proc for a process and those that it has started."""
    pending = [process]
    while pending:
        number = pending.pop()
        try:
            text = Path(f"/proc/{number}/{name}").read_text()
            children = [
                child
                for task in Path(f"/proc/{number}/task").iterdir()
                for child in (task / "children").read_text().split()
            ]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # It has ended meanwhile.
        yield text
        pending += map(int, children)


def tree_memory(process: int) -> int:
    """Returns the bytes that a process and those that it has started keep for themselves."""
    return sum(
        int(line.split()[1]) << 10
        for text in _read_tree(process, "smaps_rollup")
        for line in text.splitlines()
        if line.startswith("Pss:")
    )


def tree_processor(process: int) -> float:
    """Returns the seconds of the processor that a process and those that it has started took, the ended included."""
    # The name, in parentheses, may have spaces; times are the 14th to the 17th field.
    ticks = sum(int(each) for text in _read_tree(process, "stat") for each in text.rpartition(")")[2].split()[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


class Rate(NamedTuple):
    """The rate that a process per job achieves."""

    per_second: float  # Models converted in a second.
    processor: float  # Seconds of the processor for a model.


def per_process(kind: str, model: Path, folder: Path, seconds: float, cores: int) -> Rate:
    """Returns how many models are converted in a second by a process each, and what one costs.

    Args:
        kind: `own` for our command, `official` for the official converter.
        model: The SavedModel.
        folder: Where results go.
        seconds: For how long processes are begun.
        cores: How many run at once.
    """

    def work(number: int) -> int:
        count = 0
        target = folder / f"{kind}{number}.tflite"
        program = ["tfconvert", str(model), "-o", str(target), "--quiet"]
        if kind == "official":
            program = ["benchmarks.official", str(model), str(target)]
        while time.monotonic() < end:
            subprocess.run([sys.executable, "-m", *program], check=True, env=child_environment(), capture_output=True)
            count += 1
        return count

    begin, used = time.monotonic(), _children_processor()
    end = begin + seconds
    with ThreadPoolExecutor(cores) as threads:
        done = sum(threads.map(work, range(cores)))
    return Rate(done / (time.monotonic() - begin), (_children_processor() - used) / done)


def _children_processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _report(
    outcome: Outcome, memory: Sequence[int], processor: float | None, rates: dict[str, list[Rate]]
) -> dict[str, Any]:
    figures = outcome.figures()
    if processor is not None:
        figures["processor_of_server"] = round(processor, 1)
        # One from the cache costs little and counts for little: it is left with the others.
        figures["processor_per_job"] = round(processor / max(len(outcome.latencies), 1), 3)
    if memory:
        figures["memory_mb"] = {"start": memory[0] >> 20, "end": memory[-1] >> 20, "most": max(memory) >> 20}
    for kind, found in rates.items():
        rate = sum(each.per_second for each in found) / len(found)
        each_takes = sum(each.processor for each in found) / len(found)
        figures[kind] = {
            "per_second": round(rate, 3),
            "ratio": round(figures["per_second"] / rate, 2),
            "goal": _GOALS[kind],
            "processor_per_job": round(each_takes, 3),
        }
        if processor is not None:
            figures[kind]["ratio_of_processor"] = round(each_takes / figures["processor_per_job"], 2)
    return figures


async def _measured(load: Load, seconds: float, process: int | None) -> tuple[Outcome, list[int], float | None]:
    memory: list[int] = []

    async def watch() -> None:
        while process is not None:
            memory.append(await asyncio.to_thread(tree_memory, process))
            await asyncio.sleep(1)

    await load.run(2.0)  # What is loaded at the first request isn't growth.
    watching = asyncio.create_task(watch())
    before = tree_processor(process) if process is not None else 0.0
    outcome = await load.run(seconds)
    watching.cancel()
    return outcome, memory, tree_processor(process) - before if process is not None else None


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_of("load", __doc__)
    parser.add_argument("--server", default="", metavar="URL", help="default: one that is started for this")
    parser.add_argument("--token-file", type=Path, metavar="FILE")
    parser.add_argument("--model", type=Path, metavar="SAVED_MODEL", help=f"default: {_MODEL} of the zoo")
    parser.add_argument("--clients", type=int, default=50, metavar="N", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=120, help="default: %(default)s")
    parser.add_argument(
        "--repeats",
        type=int,
        default=10,
        metavar="N",
        help="every Nth model was sent before; 0 for none. Default: %(default)s",
    )
    parser.add_argument("--options", default="{}", metavar="JSON", help="the options of each job")
    parser.add_argument("--baselines", default="own,official", help="default: %(default)s")
    parser.add_argument("--baseline-seconds", type=float, default=30, help="default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures go besides")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 1 if something was lost, doubled or wrong, or memory grew."""
    options = _arguments(arguments)
    cores = len(os.sched_getaffinity(0))
    model = options.model
    if model is None:
        (entry,) = select(default_cache(), [_MODEL], "k3")
        make(entry)
        model = entry.saved_model
    token = options.token_file.read_text().strip() if options.token_file else ""
    kinds = [kind for kind in options.baselines.split(",") if kind]
    rates: dict[str, list[Rate]] = {kind: [] for kind in kinds}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for kind in kinds:  # Half of each before, and half after: other work on the machine comes and goes.
            rates[kind].append(per_process(kind, model, folder, options.baseline_seconds / 2, cores))
        with ExitStack() as running:
            url, process = options.server, None
            if not url:
                url, process = running.enter_context(server_of_its_own(folder, cores))
            load = Load(url, token, model, options.clients, options.repeats, options.options)
            outcome, memory, processor = asyncio.run(_measured(load, options.seconds, process))
        for kind in kinds:
            rates[kind].append(per_process(kind, model, folder, options.baseline_seconds / 2, cores))
    figures = _report(outcome, memory, processor, rates)
    print(json.dumps(figures, indent=1))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if outcome.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
