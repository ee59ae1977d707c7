"""Which ops are declared, and which of them can be computed."""

from __future__ import annotations

import pytest

from tfconvert.converter.executor import control_flow, resources
from tfconvert.converter.targets.litert.legalize import legalizations
from tfconvert.ops import generate, index
from tfconvert.ops.call import Call
from tfconvert.ops.registry import WITHOUT_KERNEL, declaration, evaluate, family, kernel, shape_function
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow import op_defs


def test_every_op_that_is_converted_can_be_computed_or_says_why_not() -> None:
    supported = {op for _, op, *_ in legalizations.entries()}
    by_executor = {name.removeprefix("tf.") for name in (*control_flow.OPS, *resources.OPS)}
    assert {op for op in supported if kernel(op) is None} - by_executor == set(WITHOUT_KERNEL)


def test_an_op_is_declared_once() -> None:
    names = [name for names in index.MODULES.values() for name in names.split()]
    assert len(set(names)) == len(names)


def test_ops_exist() -> None:
    names = {name for names in index.MODULES.values() for name in names.split() if not name.startswith("tfl.")}
    assert names <= set(op_defs.names())


def test_most_ops_have_a_shape_function() -> None:
    assert shape_function("NoSuchOp") is None
    assert sum(shape_function(name) is not None for name in op_defs.names()) > 250


def test_the_index_is_current() -> None:
    written = generate.INDEX.read_text(encoding="utf-8")
    assert written == generate.index(), "run: python -m tfconvert.ops.generate"


def test_declarations_are_found_by_name() -> None:
    for module, names in index.MODULES.items():
        declared = {each.name: each for each in family(module)}
        assert names.split() == sorted(declared), module
        assert all(declaration(name) is each for name, each in declared.items())


@pytest.mark.parametrize(("op", "reason"), [("RandomUniform", "generator"), ("NoSuchOp", "no reference kernel")])
def test_an_op_without_a_kernel_says_so(op: str, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason) as caught:
        evaluate(Call(op, (), {}))
    assert caught.value.code == "no-reference-kernel"
