"""Times the fast forms of operators in LiteRT, and prints the table that says what each gains.

    python -m benchmarks.form_speed > tfconvert/converter/targets/litert/fast/speed.tsv

A row is a graph with the microseconds of its usual form and of its fast one: one thread, minima of runs in turns. The
graphs are those of the tests.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.converter.targets.litert.fast.cases import FAST_CASES, FastCase
from tests.converter.targets.litert.optimize.graph import Graph
from tfconvert.converter.targets.litert.passes.fast_forms import FastForms

# How long each pair is timed, and one of both before it is the other's turn.
SECONDS = 0.5
TURN = 0.003


def interpreter_of(content: bytes, shape: Sequence[int]) -> Any:
    """Returns an interpreter of one thread with a random input set."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    interpreter.set_tensor(given["index"], np.random.default_rng(1).normal(0, 1, shape).astype(np.float32))
    interpreter.invoke()
    return interpreter


def microseconds_of(interpreters: Sequence[Any]) -> list[float]:
    """Returns the minimum time of each, run in turns."""
    least = [float("inf")] * len(interpreters)
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for index, interpreter in enumerate(interpreters):
            until = time.perf_counter() + TURN
            while (start := time.perf_counter()) < until:
                interpreter.invoke()
                least[index] = min(least[index], time.perf_counter() - start)
    return [each * 1e6 for each in least]


def measured(case: FastCase) -> list[float]:
    """Returns the microseconds of a graph's usual form and of its fast one."""
    graph = Graph(case.shape)
    graph.returns(case.make(graph, graph.inputs[0]))
    usual = graph.content
    FastForms().apply(graph.module)
    return microseconds_of([interpreter_of(content, case.shape) for content in (usual, graph.content)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.form_speed", description=(__doc__ or "").split("\n")[0])
    parser.parse_args(arguments)
    print("pattern", "shape", "becomes", "usual", "fast", sep="\t")
    for case in FAST_CASES:
        usual, fast = measured(case)
        shape = "x".join(map(str, case.shape))
        print(case.pattern, shape, case.expected, f"{usual:.1f}", f"{fast:.1f}", sep="\t", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
