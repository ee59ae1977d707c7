"""Compares how long our files and the official converter's take in LiteRT.

    python -m benchmarks.latency                          the float zoo, one thread
    python -m benchmarks.latency --mode dynamic --threads 2 --only gpt,llama
    python -m benchmarks.latency --operators --only gpt   and how often each file has which operator

Models and the official converter's files are kept in a cache folder. Both files of a model run in one process in turns,
many short runs each, so that whatever else the machine does slows both alike. Where a process happens to place weights
in memory changes times by several percent, for equal files, too: so several processes run a pair, and each file loads
first in every other one. The figures are the minima over all of them, the ratio of the lower quartiles, and the numbers
of the pieces that XNNPACK runs and of the operators that it doesn't follow. With a mode that quantizes, our float file
takes its turns, too, and the last figure is the time in relation to its.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tfconvert
from benchmarks.commands import REPOSITORY, parser_of
from benchmarks.latency_models import MODELS, LatencyModel
from benchmarks.litert import differing, operators
from benchmarks.zoo import QUIET_TENSORFLOW, default_cache

MODES = ("float", "dynamic", "int8")
SAMPLES = 4

# In how many processes a pair of files runs, how long in each, and how long one of both before it is the other's turn.
PROCESSES = 4
SECONDS = 0.5
TURN = 0.004
MIN_TURNS = 12


@dataclass(frozen=True, slots=True)
class Pair:
    """The figures of a model: ours first, then the official file's."""

    name: str  # The model's name.
    family: str  # Its family.
    seconds: tuple[float, float]  # The minima of an inference over all processes.
    quartiles: tuple[float, float]  # The least of the processes' lower quartiles.
    parts: tuple[tuple[int, int], tuple[int, int]]  # The numbers of XNNPACK's pieces, and of operators beside them.
    operators: tuple[dict[str, int], dict[str, int]]  # How often each file has each operator.
    difference: float  # The largest difference between the outputs, relative to the largest number.
    by_float: float | None  # The ratio of our minimum to that of our float file, `None` in the mode `float`.

    @property
    def ratio(self) -> float:
        """Our time in relation to the official file's."""
        return self.seconds[0] / self.seconds[1]

    @property
    def quartile_ratio(self) -> float:
        """The same for the lower quartiles."""
        return self.quartiles[0] / self.quartiles[1]


def _concrete(model: LatencyModel, batch: int | None) -> tuple[Any, Any]:
    """Returns a function for a size of the batch, and the object that holds its variables."""
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    built = model.build()
    module = tf.Module()
    if model.inputs:
        specs = [tf.TensorSpec(shape, kind, f"x{index}") for index, (shape, kind) in enumerate(model.inputs)]
        call = built
    else:
        specs = [
            tf.TensorSpec((batch, *tensor.shape[1:]), tensor.dtype, f"x{index}")
            for index, tensor in enumerate(built.inputs)
        ]

        def call(*tensors: Any) -> Any:
            return built(list(tensors) if len(tensors) > 1 else tensors[0], training=False)

    def serve(*tensors: Any) -> dict[str, Any]:
        return {f"y{index}": value for index, value in enumerate(tf.nest.flatten(call(*tensors)))}

    concrete = tf.function(serve, input_signature=specs, autograph=False).get_concrete_function()
    module.kept = list(concrete.variables)
    return concrete, module


def inputs_of(shapes: Sequence[tuple[Sequence[int], Any]], seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Returns random inputs; integers are 0 or 1, which are in every table and mask."""
    random = np.random.default_rng(seed)
    return [
        random.integers(0, 2, shape).astype(kind)
        if np.issubdtype(kind, np.integer)
        else random.uniform(0, 1, shape).astype(kind)
        for shape, kind in shapes
    ]


def make(model: LatencyModel, folder: Path, modes: Sequence[str], batch: int | None) -> None:
    """Saves a model and the official converter's files, unless they are there; a failure of theirs is written down."""
    import tensorflow as tf

    wanted = [mode for mode in modes if not any((folder / f"{mode}.{end}").exists() for end in ("tflite", "failed"))]
    if not wanted:
        return
    saved = folder / "saved_model"
    concrete, module = _concrete(model, batch)
    if not saved.exists():
        tf.saved_model.save(module, str(saved), signatures=concrete)
    specs = [
        (tuple(dim or 1 for dim in spec.shape), spec.dtype.as_numpy_dtype)
        for spec in concrete.structured_input_signature[0]
    ]

    def samples() -> Iterator[dict[str, Any]]:
        for seed in range(SAMPLES):
            yield {f"x{index}": value for index, value in enumerate(inputs_of(specs, seed))}

    arrays: dict[str, Any] = {name: np.stack([each[name] for each in samples()]) for name in next(samples())}
    np.savez(folder / "samples.npz", **arrays)
    for mode in wanted:
        converter = tf.lite.TFLiteConverter.from_saved_model(str(saved))
        if mode != "float":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if mode == "int8":
            converter.representative_dataset = samples
        failed = folder / f"{mode}.failed"
        failed.write_text("the process ended")
        try:
            (folder / f"{mode}.tflite").write_bytes(converter.convert())
        except Exception:  # noqa: BLE001  # whatever it is, the official converter has no file to compare with
            failed.write_text(traceback.format_exc())
            continue
        failed.unlink()


def _convert(folder: Path, mode: str) -> Path:
    """Returns our file of a model."""
    result = folder / f"ours_{mode}.tflite"
    settings: dict[str, Any] = {}
    if mode == "dynamic":
        settings["quantize"] = "dynamic"
    if mode == "int8":
        arrays = np.load(folder / "samples.npz")
        samples = [{name: arrays[name][seed] for name in arrays} for seed in range(SAMPLES)]
        settings["quantize"] = tfconvert.Quantize("int8", samples=samples)
    tfconvert.convert(folder / "saved_model", **settings).save(result)
    return result


def interpreter_of(path: Path, threads: int) -> Any:
    """Returns an interpreter with random inputs that has run once."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path), num_threads=threads)
    interpreter.allocate_tensors()
    given = sorted(interpreter.get_input_details(), key=lambda each: str(each["name"]))
    for each, value in zip(given, inputs_of([(each["shape"], each["dtype"]) for each in given]), strict=True):
        interpreter.set_tensor(each["index"], value)
    interpreter.invoke()
    return interpreter


def times_of(interpreters: Sequence[Any], seconds: float) -> list[list[float]]:
    """Returns the times of runs in turns."""
    times: list[list[float]] = [[] for _ in interpreters]
    end = time.perf_counter() + seconds
    turns = 0
    while turns < MIN_TURNS or time.perf_counter() < end:
        for taken, interpreter in zip(times, interpreters, strict=True):
            until = time.perf_counter() + TURN
            while True:
                start = time.perf_counter()
                interpreter.invoke()
                now = time.perf_counter()
                taken.append(now - start)
                if now > until:
                    break
        turns += 1
    return times


def parts_of(interpreter: Any) -> tuple[int, int]:
    """Returns how many pieces XNNPACK runs, and how many operators run beside them."""
    ops = interpreter._get_ops_details()  # noqa: SLF001  # nothing public has the delegates
    pieces = [op for op in ops if op["op_name"] == "DELEGATE"]
    made = {int(index) for op in pieces for index in op["outputs"]}
    inside = _inside(ops, pieces, made)
    return len(pieces), len(ops) - len(pieces) - inside


def _inside(ops: Sequence[Any], pieces: Sequence[Any], made: set[int]) -> int:
    """Returns how many operators the pieces replace: those that only lead from a piece's inputs to its outputs."""
    producer = {int(index): op for op in ops if op not in pieces for index in op["outputs"]}
    replaced: set[int] = set()
    for piece in pieces:
        given = {int(index) for index in piece["inputs"]}
        waiting = [int(index) for index in piece["outputs"]]
        while waiting:
            index = waiting.pop()
            op = producer.get(index)
            if op is None or index in given or op["index"] in replaced:
                continue
            replaced.add(op["index"])
            waiting += [int(each) for each in op["inputs"] if each >= 0]
    return len(replaced)


def _outputs(interpreter: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the outputs, in an order that doesn't depend on the converter: by shape, then by their sums."""
    values = [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]
    return dict(
        zip(map(str, range(len(values))), sorted(values, key=lambda each: (each.shape, each.sum())), strict=True)
    )


def _times_in_process(paths: Sequence[Path], threads: int, seconds: float) -> list[tuple[float, float]]:
    """Returns the minimum and the lower quartile of each file, which are loaded in this order."""
    times = times_of([interpreter_of(path, threads) for path in paths], seconds)
    return [(min(taken), _quartile(taken)) for taken in times]


def _compared_in_process(paths: Sequence[Path], threads: int) -> tuple[float, tuple[tuple[int, int], tuple[int, int]]]:
    """Returns the largest difference between two files' outputs, relative to the largest number, and their parts."""
    interpreters = [interpreter_of(path, threads) for path in paths]
    ours, official = map(_outputs, interpreters)
    difference = max(
        float(np.max(np.abs(ours[name] - value.astype(float)), initial=0) / (np.max(np.abs(value), initial=0) or 1))
        for name, value in official.items()
    )
    return difference, (parts_of(interpreters[0]), parts_of(interpreters[1]))


def _processes() -> ProcessPoolExecutor:
    """Returns what runs each call in a process of its own."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1)


def least_times(paths: Sequence[Path], threads: int, seconds: float, processes: int) -> tuple[list[float], list[float]]:
    """Returns the least of the minima and of the lower quartiles of each file over several processes."""
    minima, quartiles = [[float("inf")] * len(paths) for _ in range(2)]
    with _processes() as pool:
        for turn in range(processes):
            order = range(len(paths)) if turn % 2 == 0 else range(len(paths) - 1, -1, -1)
            results = pool.submit(_times_in_process, [paths[index] for index in order], threads, seconds).result()
            for index, (minimum, quartile) in zip(order, results, strict=True):
                minima[index] = min(minima[index], minimum)
                quartiles[index] = min(quartiles[index], quartile)
    return minima, quartiles


def measure(model: LatencyModel, folder: Path, options: argparse.Namespace) -> Pair:
    """Measures both files of a model.

    Raises:
        BrokenProcessPool: A file ends the process that runs it.
    """
    paths = [_convert(folder, options.mode), folder / f"{options.mode}.tflite"]
    with _processes() as pool:
        difference, parts = pool.submit(_compared_in_process, paths, options.threads).result()
    timed = [*paths, _convert(folder, "float")] if options.mode != "float" else paths
    minima, quartiles = least_times(timed, options.threads, options.seconds, options.processes)
    return Pair(
        model.name,
        model.family,
        (minima[0], minima[1]),
        (quartiles[0], quartiles[1]),
        parts,
        (_counts(paths[0]), _counts(paths[1])),
        difference,
        minima[0] / minima[2] if len(minima) > 2 else None,
    )


def _quartile(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=4)[0]


def _counts(path: Path) -> dict[str, int]:
    return dict(sorted(operators(path).items()))


def lines_of(pair: Pair, with_operators: bool) -> Iterator[str]:
    """Yields the lines of a model."""
    counts = [sum(each.values()) for each in pair.operators]
    parts = " ".join(f"{pieces}+{others}" for pieces, others in pair.parts)
    by_float = "" if pair.by_float is None else f"  {pair.by_float:.3f}"
    yield (
        f"{pair.name:20} {pair.seconds[0] * 1e3:8.3f} {pair.seconds[1] * 1e3:8.3f} {pair.ratio:6.3f}"
        f" {pair.quartile_ratio:6.3f}  {counts[0]:4} {counts[1]:4}  {parts:12} {pair.difference:.0e}{by_float}"
    )
    if with_operators:
        for name, mine, theirs in differing(*map(Counter, pair.operators)):
            yield f"    {name:30} {mine:4} {theirs:4}"


def means(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yields the geometric means."""
    families = list(dict.fromkeys(pair.family for pair in pairs))
    for family in (*families, ""):
        chosen = [pair for pair in pairs if family in ("", pair.family)]
        mean = statistics.geometric_mean(pair.ratio for pair in chosen)
        quartile = statistics.geometric_mean(pair.quartile_ratio for pair in chosen)
        largest = max(chosen, key=lambda pair: pair.ratio)
        yield (
            f"{family or 'all':12} {len(chosen):3} models  {mean:.3f}  quartiles {quartile:.3f}"
            f"  largest {largest.ratio:.3f} ({largest.name})"
        )


def slower_than_floats(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yields a line about how quantized files compare with float ones."""
    ratios = {pair.name: pair.by_float for pair in pairs if pair.by_float is not None}
    if ratios:
        slower = [f"{name} {ratio:.3f}" for name, ratio in ratios.items() if ratio > 1]
        mean = statistics.geometric_mean(ratios.values())
        yield f"by floats {len(ratios):5} models  {mean:.3f}  slower: {', '.join(slower) or 'none'}"


def selected(names: str, family: str) -> list[LatencyModel]:
    """Returns the models with some names, and of a family."""
    wanted = set(filter(None, names.split(",")))
    unknown = wanted - {model.name for model in MODELS}
    if unknown:
        raise SystemExit(f"no such models: {', '.join(sorted(unknown))}")
    return [
        model for model in MODELS if (not wanted or model.name in wanted) and (not family or model.family == family)
    ]


def _folder(options: argparse.Namespace, model: LatencyModel) -> Path:
    """Returns where a model is kept."""
    cache: Path = options.cache
    return cache / (f"{model.name}_open" if options.open else model.name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("latency", __doc__)
    parser.add_argument("--only", default="", metavar="NAME,...", help="these models")
    parser.add_argument("--family", default="", help="models of this family")
    parser.add_argument("--mode", choices=MODES, default="float", help="the numbers of the weights (%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of LiteRT (%(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long a process runs a pair (%(default)s)")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="how many processes run a pair (%(default)s)")
    parser.add_argument("--operators", action="store_true", help="print the operators that differ in number")
    parser.add_argument("--make", action="store_true", help="only make the models and the official files, all modes")
    parser.add_argument("--open", action="store_true", help="leave the batch of Keras models open, as Keras does")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--cache", type=Path, default=default_cache().parent / "latency", help="default: %(default)s")
    options = parser.parse_args(arguments)
    models = selected(options.only, options.family)
    if options.make:
        os.environ.update(QUIET_TENSORFLOW)
        for model in models:
            folder = _folder(options, model)
            folder.mkdir(parents=True, exist_ok=True)
            make(model, folder, (options.mode,) if options.open else MODES, None if options.open else 1)
            print(model.name, flush=True)
        return 0
    missing = [model.name for model in models if not list(_folder(options, model).glob(f"{options.mode}.*"))]
    if missing:
        command = [sys.executable, "-m", "benchmarks.latency", "--make", "--only", ",".join(missing)]
        command += ["--mode", options.mode, *(["--open"] if options.open else [])]
        subprocess.run([*command, "--cache", str(options.cache)], cwd=REPOSITORY, check=True, capture_output=True)
    pairs = []
    for model in models:
        folder = _folder(options, model)
        if not (folder / f"{options.mode}.tflite").exists():
            print(f"{model.name:20} the official converter fails")
            continue
        try:
            pairs.append(measure(model, folder, options))
        except BrokenProcessPool:
            print(f"{model.name:20} a file ends the process that runs it")
            continue
        print(*lines_of(pairs[-1], options.operators), sep="\n", flush=True)
    print(*means(pairs), *slower_than_floats(pairs), sep="\n")
    if options.json:
        options.json.write_text(json.dumps([asdict(pair) for pair in pairs], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
