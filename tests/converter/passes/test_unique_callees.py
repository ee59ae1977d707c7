"""The pass `unique-callees`."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.unique_callees import UniqueCallees
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp


def _module(text: str) -> ModuleOp:
    return IRParser(text).parse_module()


def _function(name: str, *branches: str, visibility: str = "private") -> str:
    """Returns a function that runs two branches in each of some `If`s."""
    ops = "\n".join(
        f'  %{index} = "tf.If"(%p, %p) <{{then_branch = @{branch}, else_branch = @{branch}, is_stateless = true}}>'
        " : (tensor<i1>, tensor<i1>) -> tensor<i1>"
        for index, branch in enumerate(branches)
    )
    return f"func.func {visibility} @{name}(%p: tensor<i1>) -> tensor<i1> {{\n{ops}\n  func.return %p : tensor<i1>\n}}"


def _names(module: ModuleOp) -> list[str]:
    return [op.sym_name for op in module.ops if isinstance(op, FuncOp)]


def test_what_a_copy_runs_is_copied_too(filecheck: FileCheck) -> None:
    filecheck(
        UniqueCallees(),
        f"""
    // CHECK: then_branch = @outer, else_branch = @outer
    // CHECK: then_branch = @outer_1, else_branch = @outer_1
    // CHECK: func.func private @outer(
    // CHECK: then_branch = @inner, else_branch = @inner
    // CHECK: func.func private @outer_1(
    // CHECK: then_branch = @inner_1, else_branch = @inner_1
    // CHECK: func.func private @inner(
    // CHECK: func.func private @inner_1(
    {_function("main", "outer", "outer", visibility="public")}
    {_function("outer", "inner")}
    {_function("inner")}
    """,
    )


def test_an_exported_function_is_never_anybodys_own(filecheck: FileCheck) -> None:
    filecheck(
        UniqueCallees(),
        f"""
    // CHECK: func.func public @main
    // CHECK: then_branch = @exported_1
    // CHECK: func.func public @exported(
    // CHECK: func.func private @exported_1(%p: tensor<i1>) -> tensor<i1> {{
    {_function("main", "exported", visibility="public")}
    func.func public @exported(%p: tensor<i1> {{tf_saved_model.index_path = ["p"]}}) -> tensor<i1>
        attributes {{tf_saved_model.exported_names = ["exported"]}} {{
      func.return %p : tensor<i1>
    }}
    """,
    )


def test_nothing_changes_where_nothing_is_shared() -> None:
    module = _module("\n".join([_function("main", "a", "b", visibility="public"), _function("a"), _function("b")]))
    before = str(module)
    assert not UniqueCallees().apply(module).counts
    assert str(module) == before


@pytest.mark.parametrize(
    ("functions", "code"),
    [
        ([_function("main", "a", visibility="public"), _function("a", "b"), _function("b", "a")], "recursive-function"),
        ([_function("main", "main", visibility="public")], "recursive-function"),
        ([_function("main", "nobody", visibility="public")], "missing-function"),
        (
            [_function(f"f{level}", f"f{level + 1}", f"f{level + 1}") for level in range(60)]
            + [_function("f60"), _function("main", "f0", visibility="public")],
            "too-many-copies",
        ),
    ],
)
def test_what_can_not_be(functions: list[str], code: str) -> None:
    with pytest.raises(ConversionError) as caught:
        UniqueCallees().apply(_module("\n".join(functions)))
    assert caught.value.code == code


def test_depth_and_a_diamond_are_no_recursion() -> None:
    depth = 1500
    chain = [_function(f"f{level}", f"f{level + 1}") for level in range(depth)]
    functions = [_function("main", "f0", "end", visibility="public"), *chain, _function(f"f{depth}", "end")]
    module = _module("\n".join([*functions, _function("end")]))
    assert UniqueCallees().apply(module).counts == {"copied": 1}
    assert "end_1" in _names(module)
