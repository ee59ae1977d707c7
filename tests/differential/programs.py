"""Random programs in TensorFlow, in our executor after each pass, and as a file in LiteRT: the same results.

    python -m tests.differential.programs --count 1000
    python -m tests.differential.programs --count 1000 --effects

Programs with effects (`random_programs.py`) also record the order of those, in the imported graph and after each pass
on `tf` ops; as files they are not run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

import tfconvert
from tests.differential.random_programs import Program, random_program
from tests.differential.summary import Totals, print_summary
from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.pipeline.runner import run_stages
from tfconvert.converter.pipelines import PIPELINES
from tfconvert.converter.targets.litert import runtime
from tfconvert.importers.source import Source
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.options import Options

_MAX_ITERATIONS = 1000

Array = np.ndarray[Any, np.dtype[Any]]


class Summary(Totals):
    """The totals of a comparison of programs."""

    __slots__ = ()

    def compare(self, name: str, expected: Sequence[Array], got: Sequence[Array]) -> None:
        """Compares the results of a run."""
        self.counts["runs compared"] += 1
        for index, (one, other) in enumerate(zip(expected, got, strict=True)):
            if one.shape != other.shape or not np.array_equal(one, other):
                self.problems.append(f"{name}: result {index} is {other.tolist()}, not {one.tolist()}")


def session_results(tf: ModuleType, program: Program) -> list[list[Array]]:
    """Returns the results of TensorFlow's session for each of a program's inputs."""
    tf1 = tf.compat.v1
    config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(program.graph, name="")
        with tf1.Session(graph=graph, config=config) as session:
            results: list[list[Array]] = [session.run(program.fetches, one) for one in program.feeds()]
    return results


def check_program(tf: ModuleType, summary: Summary, name: str, program: Program) -> None:
    """Compares one program everywhere.

    Args:
        tf: TensorFlow.
        summary: Collects the results.
        name: The program, for the messages.
        program: The program.
    """
    expected = session_results(tf, program)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.pb"
        path.write_bytes(program.graph.SerializeToString())
        source = Source(path, inputs=list(program.inputs), outputs=program.fetches)
        try:
            _check_passes(summary, name, program, source.open(), expected)
            if not program.log:
                content = bytes(tfconvert.convert(path, inputs=source.inputs, outputs=source.outputs))
                for feed, results in zip(program.feeds(), expected, strict=True):
                    summary.compare(f"{name} in LiteRT", results, runtime.run_file(content, "", feed, []))
        except ConversionError as problem:
            summary.problems.append(f"{name}: {problem}")
    summary.counts["programs"] += 1


def _check_passes(
    summary: Summary, name: str, program: Program, module: ModuleOp, expected: Sequence[Sequence[Array]]
) -> None:
    summary.counts["V1 ops"] += sum(op.name.startswith("tf_executor.Switch") for op in module.walk())
    for done in chain(["import"], (done.name for done in run_stages(module, PIPELINES["tf-standard"], Options()))):
        verify(module)
        for feed, results in zip(program.feeds(), expected, strict=True):
            executor = Executor(module, max_iterations=_MAX_ITERATIONS)
            summary.compare(f"{name} after {done}", results, executor.run("main", list(feed.values())))


def check_programs(tf: ModuleType, seeds: Sequence[int], *, statements: int = 8, effects: bool = False) -> Summary:
    """Compares random programs.

    Args:
        tf: TensorFlow.
        seeds: A program each.
        statements: The largest number of statements at a program's top.
        effects: Whether they have effects.
    """
    summary = Summary()
    for seed in seeds:
        random = Random(seed)
        program = random_program(tf, random, statements=random.randint(1, statements), effects=effects)
        check_program(tf, summary, f"seed {seed}", program)
    return summary


def main() -> None:
    """Compares as many programs as the command line states and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first program's seed")
    parser.add_argument("--statements", type=int, default=8, help="the largest number of statements at a program's top")
    parser.add_argument("--effects", action="store_true", help="with effects, the order of which is compared")
    arguments = parser.parse_args()
    import tensorflow as tf

    start = time.perf_counter()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    summary = check_programs(tf, seeds, statements=arguments.statements, effects=arguments.effects)
    print_summary(summary.counts, summary.problems, time.perf_counter() - start)


if __name__ == "__main__":
    main()
