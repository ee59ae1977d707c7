"""Random recurrent networks in TensorFlow, and as files in LiteRT, run again and again: the same results.

    python -m tests.differential.recurrent --count 1000
    python -m tests.differential.recurrent --count 1000 --recurrent unrolled

Whatever becomes an operator must be what the operator computes. About half of the networks do.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tfconvert
from benchmarks.recurrent import Worker
from tests.differential.recurrent_draws import Array
from tests.differential.recurrent_programs import Program, random_program
from tests.differential.summary import Totals, print_summary
from tfconvert.settings.targets import RECURRENT

# The tolerance, relative to the largest number.
TOLERANCE = 1e-5

Feeds = Sequence[dict[str, Array]]


def run_in_litert(content: bytes, feeds: Feeds) -> list[list[Array]]:
    """Returns the results of one interpreter for inputs, one after the other, resized where they change."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content, num_threads=1)
    details = interpreter.get_input_details()
    results, shapes = [], None
    for feed in feeds:
        values = list(feed.values())
        if [value.shape for value in values] != shapes:
            shapes = [value.shape for value in values]
            for detail, shape in zip(details, shapes, strict=True):
                interpreter.resize_tensor_input(detail["index"], shape)
            interpreter.allocate_tensors()
        for detail, value in zip(details, values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        results.append([interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()])
    return results


def run_in_tensorflow(tf: ModuleType, program: Program, feeds: Feeds) -> list[list[Array]]:
    """Returns TensorFlow's results."""
    tf1 = tf.compat.v1
    config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(program.graph, name="")
        with tf1.Session(graph=graph, config=config) as session:
            fetches = [f"{name}:0" for name in program.outputs]
            return [session.run(fetches, {f"{name}:0": value for name, value in feed.items()}) for feed in feeds]


def check(tf: ModuleType, seed: int, runtime: Worker, summary: Totals, recurrent: Any = RECURRENT[0]) -> None:
    """Compares one network.

    Args:
        tf: TensorFlow.
        seed: The network's seed.
        runtime: Runs files.
        summary: Collects the results.
        recurrent: What recurrent layers become.
    """
    try:
        program = random_program(tf, seed)
        feeds = list(program.feeds(seed))
        expected = run_in_tensorflow(tf, program, feeds)
    except (ValueError, TypeError, tf.errors.OpError):
        summary.counts["refused by TensorFlow"] += 1
        return
    try:
        model = convert(program, recurrent)
        got = runtime(run_in_litert, bytes(model), feeds)
    except tfconvert.ConversionError as problem:
        if {each.code for each in problem.diagnostics} == {"list-element-shape"}:
            summary.counts["refused by us, too: rows of a size that has to be computed"] += 1
        else:
            summary.problems.append(f"seed {seed}: {problem} {sorted(program.mutations)}")
        return
    except (RuntimeError, ValueError) as problem:  # LiteRT's errors for a file or an input that it rejects.
        summary.problems.append(f"seed {seed}: {problem} {sorted(program.mutations)}")
        return
    form = _form(model.report.operators)
    summary.counts[form] += 1
    summary.counts["mutated"] += bool(program.mutations)
    summary.counts[f"{form}, though mutated" if program.mutations else f"{form}, not mutated"] += 1
    error = max(
        error_of(one, other) for run in zip(expected, got, strict=True) for one, other in zip(*run, strict=True)
    )
    if not error <= TOLERANCE:
        summary.problems.append(f"seed {seed}: {form}, but off by {error:.1e}; {sorted(program.mutations)}")


def convert(program: Program, recurrent: Any = RECURRENT[0]) -> tfconvert.Model:
    """Converts a network.

    Args:
        program: The network.
        recurrent: What recurrent layers become.

    Raises:
        ConversionError: It can't be converted.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.pb"
        path.write_bytes(program.graph.SerializeToString())
        model = tfconvert.convert(
            path, inputs=list(program.inputs), outputs=program.outputs, target=tfconvert.LiteRT(recurrent=recurrent)
        )
        bytes(model)
        return model


def _form(operators: Counter[str]) -> str:
    """Returns the form of a network's layers after conversion."""
    fused = any("_SEQUENCE_" in name for name in operators)
    if fused and "WHILE" in operators:
        return "fused in part"
    return "fused" if fused else "loop" if "WHILE" in operators else "plain operators"


def error_of(expected: Any, got: Array) -> float:
    """Returns how far off a result is, relative to the largest number; infinite if it has another shape."""
    want = np.asarray(expected)
    if want.shape != got.shape:
        return float("inf")
    if not want.size:
        return 0.0
    scale = 1 + float(np.max(np.abs(want)))
    return float(np.max(np.abs(want - got))) / scale


def check_networks(tf: ModuleType, seeds: Sequence[int], recurrent: Any = RECURRENT[0]) -> Totals:
    """Compares random networks.

    Args:
        tf: TensorFlow.
        seeds: A network each.
        recurrent: What recurrent layers become.
    """
    summary = Totals()
    with Worker() as runtime:
        for seed in seeds:
            check(tf, seed, runtime, summary, recurrent)
    return summary


def main() -> None:
    """Compares as many networks as the command line states and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many networks")
    parser.add_argument("--seed", type=int, default=0, help="the first network's seed")
    parser.add_argument("--recurrent", default=RECURRENT[0], choices=RECURRENT, help="what recurrent layers become")
    arguments = parser.parse_args()
    import tensorflow as tf

    start = time.perf_counter()
    summary = check_networks(tf, range(arguments.seed, arguments.seed + arguments.count), arguments.recurrent)
    print_summary(summary.counts, summary.problems, time.perf_counter() - start)


if __name__ == "__main__":
    main()
