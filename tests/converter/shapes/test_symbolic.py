"""Which unknown dimensions are found to be the same one."""

from __future__ import annotations

import pytest

from tfconvert.converter.control_flow.calls import Calls
from tfconvert.converter.shapes.symbolic import Symbols
from tfconvert.converter.tensor_lists import lists
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.values import Value

T = "tensor<?x4xf32>"


def _batches(body: str, variables: str = f"tensor<i32>, {T}", operands: str = "%n, %x", extra: str = "") -> list[int]:
    """Returns the first dimensions of what comes out of a loop, and of the inputs `x` and `y`."""
    names = ["%i", "%s", "%t"][: variables.count("tensor")]
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(names, variables.split(", "), strict=True))
    text = f"""
    func.func @main(%x: {T}, %y: {T}, %n: tensor<i32>) -> {T} {{
      {extra}
      %0:{len(names)} = "tf.While"({operands}) <{{cond = @cond, body = @body, is_stateless = true,
        parallel_iterations = 10 : i64}}> : ({variables}) -> ({variables})
      func.return %0#1 : {T}
    }}
    func.func private @cond({arguments}) -> tensor<i1> {{
      %0 = "tf.Less"(%i, %i) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      func.return %0 : tensor<i1>
    }}
    func.func private @body({arguments}) -> ({variables}) {{
      {body}
    }}"""
    module = IRParser(text).parse_module()
    verify(module)
    calls = Calls(module)
    symbols = Symbols(calls, lists.find(calls))
    main = calls.functions["main"].body.block
    assert main.last_op is not None

    def first(value: Value) -> int:
        shape = symbols.shape(value)
        assert shape is not None
        return shape[0]

    return [first(main.last_op.operands[0]), *map(first, main.args[:2])]


def test_unchanged_dimensions_are_those_of_the_inputs() -> None:
    result, x, _ = _batches(f"""
      %0 = "tf.Tanh"(%s) : ({T}) -> {T}
      func.return %i, %0 : tensor<i32>, {T}""")
    assert result == x


def test_changed_dimensions_are_unknown() -> None:
    result, x, y = _batches(f"""
      %0 = "tf.Const"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
      %1 = "tf.ConcatV2"(%s, %s, %0) : ({T}, {T}, tensor<i32>) -> {T}
      func.return %i, %1 : tensor<i32>, {T}""")
    assert result not in (x, y)


@pytest.mark.parametrize(("first", "second"), [("%s", "%t"), ("%t", "%s")])
def test_swapped_variables_are_not_distinguished(first: str, second: str) -> None:
    result, x, y = _batches(
        f"func.return %i, {first}, {second} : tensor<i32>, {T}, {T}", f"tensor<i32>, {T}, {T}", "%n, %x, %y"
    )
    assert (result == x) is (first == "%s")
    assert result != y


def test_elements_have_the_dimensions_of_written_values() -> None:
    kind = "tensor<!tf_type.variant>"
    result, x, _ = _batches(
        f"""
      %0 = "tf.TensorListSetItem"(%t, %i, %s) <{{resize_if_index_out_of_bounds = true}}>
        : ({kind}, tensor<i32>, {T}) -> {kind}
      %1 = "tf.Const"() <{{value = dense<-1> : tensor<i32>}}> : () -> tensor<i32>
      %2 = "tf.TensorListGetItem"(%0, %i, %1) : ({kind}, tensor<i32>, tensor<i32>) -> {T}
      func.return %i, %2, %0 : tensor<i32>, {T}, {kind}""",
        f"tensor<i32>, {T}, {kind}",
        "%n, %x, %l",
        f"""%shape = "tf.Const"() <{{value = dense<[-1, 4]> : tensor<2xi32>}}> : () -> tensor<2xi32>
      %l = "tf.TensorListReserve"(%shape, %n) <{{element_dtype = f32}}> : (tensor<2xi32>, tensor<i32>) -> {kind}""",
    )
    assert result == x


def test_concatenated_values_have_equal_dimensions() -> None:
    result, x, y = _batches(
        f"""
      %0 = "tf.Tanh"(%s) : ({T}) -> {T}
      func.return %i, %0 : tensor<i32>, {T}""",
        extra=f"""
      %axis = "tf.Const"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
      %both = "tf.ConcatV2"(%x, %y, %axis) : ({T}, {T}, tensor<i32>) -> tensor<?x8xf32>""",
    )
    assert result == x == y


def test_operands_of_select_are_broadcast() -> None:
    def chosen(first: str, second: str) -> list[int]:
        return _batches(
            f"""
          %0 = "tf.Greater"({first}, {second}) : ({T}, {T}) -> tensor<?x4xi1>
          %1 = "tf.SelectV2"(%0, %s, %t) : (tensor<?x4xi1>, {T}, {T}) -> {T}
          func.return %i, %1, %t : tensor<i32>, {T}, {T}""",
            f"tensor<i32>, {T}, {T}",
            "%n, %x, %y",
        )

    result, x, y = chosen("%s", "%s")
    assert result not in (-1, x, y)  # a size of its own, which both of them may be
    assert chosen("%t", "%t")[0] == result
