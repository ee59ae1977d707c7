"""Shows how the time to convert V1 control flow grows: conditionals and loops, side by side, nested, and large.

    python -m benchmarks.control_flow
    python -m benchmarks.control_flow --shape nested --stages

The budget: twice the nodes take at most 2.3 times the time. Exit status 1 if a step is over it. Times are those of the
stages of a conversion, without the start of the process.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.commands import last_line, parser_of
from benchmarks.scaling import stage_seconds
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# The limit of the growth of time relative to nodes.
SLACK = 1.15

INPUT, OUTPUT = "input", "output"


class Graph:
    """A graph of float scalars.

    Attributes:
        graph: The nodes so far.
    """

    def __init__(self) -> None:
        self.graph = pb.GraphDef()
        self.graph.versions.producer = 2000
        self.node("Placeholder", attribute="dtype")
        self.graph.node[0].name = INPUT

    def node(self, op: str, *inputs: str, attribute: str = "T", frame: str = "", constant: bool = False) -> str:
        """Adds a node and returns its name."""
        node = self.graph.node.add(op=op, name=f"n{len(self.graph.node)}", input=inputs)
        node.attr[attribute].type = pb.DT_FLOAT
        if op == "Merge":
            node.attr["N"].i = len(inputs)
        if frame:
            node.attr["frame_name"].s = frame.encode()
            node.attr["is_constant"].b = constant
        if op == "Placeholder":
            node.attr["shape"].shape.SetInParent()
        return node.name

    def constant(self, value: float) -> str:
        """Adds a constant."""
        name = self.node("Const", attribute="dtype")
        tensor = self.graph.node[-1].attr["value"].tensor
        tensor.dtype = pb.DT_FLOAT
        tensor.tensor_shape.SetInParent()
        tensor.float_val.append(value)
        return name

    def done(self, value: str) -> pb.GraphDef:
        """Returns the graph, which computes a value."""
        self.node("Identity", value)
        self.graph.node[-1].name = OUTPUT
        return self.graph

    def opened(self, value: str, predicate: str = "") -> tuple[str, str]:
        """Adds a Switch; returns the value that is alive in each branch."""
        switch = self.node("Switch", value, predicate or self.node("Less", value, self.constant(1)))
        return switch, f"{switch}:1"

    def loop(self, value: str, body: Callable[[str], str], frame: str) -> str:
        """Adds a loop that continues below 100."""
        enter = self.node("Enter", value, frame=frame)
        bound = self.node("Enter", self.constant(100), frame=frame, constant=True)
        merge = self.node("Merge", enter, "")
        at = len(self.graph.node) - 1
        condition = self.node("LoopCond", self.node("Less", merge, bound))
        switch = self.node("Switch", merge, condition)
        self.graph.node[at].input[1] = self.node("NextIteration", body(f"{switch}:1"))
        return self.node("Exit", switch)


def sequential(count: int) -> pb.GraphDef:
    """Returns conditionals, each of which uses the result of the previous one."""
    graph = Graph()
    value = INPUT
    for _ in range(count):
        no, yes = graph.opened(value)
        value = graph.node("Merge", graph.node("Neg", no), graph.node("AddV2", yes, yes))
    return graph.done(value)


def shared(count: int) -> pb.GraphDef:
    """Returns the same, all by one predicate."""
    graph = Graph()
    value = INPUT
    predicate = graph.node("Less", value, graph.constant(1))
    for _ in range(count):
        no, yes = graph.opened(value, predicate)
        value = graph.node("Merge", graph.node("Neg", no), graph.node("AddV2", yes, yes))
    return graph.done(value)


def nested(count: int) -> pb.GraphDef:
    """Returns conditionals, each in a branch of the previous one."""
    graph = Graph()
    value, others = INPUT, list[str]()
    for _ in range(count):
        no, value = graph.opened(graph.node("AddV2", value, value))
        others.append(graph.node("Neg", no))
    for other in reversed(others):
        merged = graph.node("Merge", other, value)
        value = graph.node("AddV2", merged, merged)
    return graph.done(value)


def loops(count: int) -> pb.GraphDef:
    """Returns loops, each of which uses the result of the previous one."""
    graph = Graph()
    value = INPUT
    for number in range(count):
        value = graph.loop(value, lambda inside: graph.node("AddV2", inside, inside), f"loop{number}")
    return graph.done(value)


def body(count: int) -> pb.GraphDef:
    """Returns one loop with the given number of nodes."""
    graph = Graph()

    def chain(value: str) -> str:
        for _ in range(count // 2):
            value = graph.node("AddV2", graph.node("Neg", value), value)
        return value

    return graph.done(graph.loop(INPUT, chain, "loop"))


# Name -> the graph of a size, and the sizes.
SHAPES: Mapping[str, tuple[Callable[[int], pb.GraphDef], Sequence[int]]] = {
    "sequential": (sequential, (100, 200, 400)),
    "shared": (shared, (100, 200, 400)),
    "nested": (nested, (50, 100, 200)),
    "loops": (loops, (25, 50, 100)),
    "body": (body, (5000, 10000, 20000)),
}


def measured(shape: str, size: int, folder: Path, runs: int) -> tuple[int, dict[str, float]]:
    """Returns how many nodes a graph has and the seconds of each stage of its conversion, at best.

    Raises:
        RuntimeError: The conversion failed.
    """
    graph = SHAPES[shape][0](size)
    source = folder / f"{shape}.pb"
    source.write_bytes(graph.SerializeToString(deterministic=True))
    command = [
        sys.executable,
        "-m",
        "tfconvert",
        str(source),
        "-o",
        str(folder / "out.tflite"),
        "--input",
        INPUT,
        "--output",
        OUTPUT,
    ]
    stages = min((stage_seconds(command) for _ in range(runs)), key=lambda one: sum(one.values()))
    stages.pop("load", None)
    return len(graph.node), stages


def is_linear(shape: str, folder: Path, runs: int, *, with_stages: bool) -> bool:
    """Prints a row for each size of a graph; returns whether time has not grown faster than nodes.

    Raises:
        RuntimeError: A conversion failed.
    """
    linear, before = True, None
    for size in SHAPES[shape][1]:
        nodes, stages = measured(shape, size, folder, runs)
        seconds, growth = sum(stages.values()), ""
        if before is not None:
            growth = f"{nodes / before[0]:.1f}x nodes, {seconds / before[1]:.1f}x time"
            linear &= seconds / before[1] <= SLACK * nodes / before[0]
        print(f"| {shape} | {size} | {nodes} | {seconds:.3f} s | {growth} |", flush=True)
        if with_stages:
            print("  " + ", ".join(f"{name} {taken:.3f}" for name, taken in stages.items()))
        before = nodes, seconds
    return linear


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("control_flow", __doc__)
    parser.add_argument("--shape", choices=(*SHAPES, "all"), default="all", help="default: %(default)s")
    parser.add_argument("--runs", type=int, default=2, help="of each size, default: %(default)s")
    parser.add_argument("--stages", action="store_true", help="show the time of each stage too")
    options = parser.parse_args(arguments)
    print("| graph | size | nodes | time | growth |\n| --- | ---: | ---: | ---: | --- |", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        try:
            fast = [
                is_linear(shape, Path(temporary), options.runs, with_stages=options.stages)
                for shape in (SHAPES if options.shape == "all" else (options.shape,))
            ]
        except RuntimeError as problem:
            print(last_line(str(problem)), file=sys.stderr)
            return 1
    return 0 if all(fast) else 1


if __name__ == "__main__":
    sys.exit(main())
