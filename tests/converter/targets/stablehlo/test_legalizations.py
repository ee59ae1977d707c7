"""Every legalization to StableHLO, static and dynamic, against TensorFlow: in XLA, our executor and on buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
import tensorflow

import tfconvert
from tests.converter.targets.stablehlo.cases import GROUPS, SIZES, case_names
from tests.converter.targets.stablehlo.engine import Program
from tests.converter.targets.stablehlo.group import Group
from tests.converter.targets.stablehlo.judged import Judged, Verdicts, differences, function_of, random_inputs
from tests.converter.targets.stablehlo.stage_checks import check_sizes, on_buffers, staged
from tfconvert.converter.executor import executor
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.parsing import IRParser

JudgedGroup = Callable[[str, bool], Judged]


def _judge(tf: ModuleType, group: Group, *, dynamic: bool) -> Iterator[tuple[str, Verdicts]]:
    """Runs a group; one that is dynamic is compiled once, and run with several sizes."""
    function = function_of(tf, group, None if dynamic else SIZES[0])
    names, results = zip(*sorted(function.structured_outputs.items()), strict=True)
    converted = tfconvert.convert(
        function.graph.as_graph_def(add_shapes=True),
        inputs=[each.name for each in function.inputs],
        outputs=[each.name for each in results],
        target=tfconvert.StableHLO(weights="inline"),
    )
    text = bytes(converted).decode()
    program = Program(text, [(each.dtype, each.shape) for each in results]) if group.in_xla else None
    if program is None:
        tf.mlir.experimental.run_pass_pipeline(text, "", False)  # It verifies what it reads.
        yield "verifier", {}
    module = IRParser(text).parse_module()
    stages = module
    if group.in_executor and dynamic:
        stages = staged(module, "place-shape-values", "fuse-instructions", "add-shape-functions")
    for index, sizes in enumerate(SIZES if dynamic else SIZES[:1]):
        inputs = random_inputs(group, sizes)
        expected = function(*[tf.constant(each) for each in inputs])
        if program is not None:
            yield "XLA", differences(names, program.run(inputs), expected)
        if group.in_executor:
            yield "executor", differences(names, executor.run(module, "main", inputs), expected)
        if group.in_executor and dynamic:
            yield "stages", differences(names, executor.run(stages, "main", inputs), expected)
            assert check_sizes(stages, inputs) > 0
            if group.on_buffers and index:
                yield "buffers", differences(names, on_buffers(module, inputs), expected)


@pytest.fixture(scope="session")
def judged(tf: ModuleType) -> JudgedGroup:
    """Returns a function that converts and runs a group once."""
    known: dict[tuple[str, bool], Judged] = {}

    def judge(name: str, dynamic: bool) -> Judged:
        if (name, dynamic) not in known:
            known[name, dynamic] = Judged(
                GROUPS[name](tf),
                lambda group: _judge(tf, group, dynamic=dynamic),
                (AssertionError, ConversionError, ValueError, tf.errors.OpError),
            )
        return known[name, dynamic]

    return judge


@pytest.mark.parametrize(("group", "case", "dynamic"), case_names(tensorflow, {False: "static", True: "dynamic"}))
def test_legalizations(judged: JudgedGroup, group: str, case: str, dynamic: bool) -> None:
    judged(group, dynamic).check(case)
