"""Lowering lists is work in proportion to the ops, however many loops there are and however deep they are nested."""

from __future__ import annotations

import pytest

from tests.support.run_text import parse
from tests.support.work import check_linear
from tfconvert.converter.passes.lower_tensor_lists import LowerTensorLists
from tfconvert.ops.verification import verify

LIST = "tensor<!tf_type.variant>"


def _loops(count: int, body_ops: int) -> str:
    """Returns a module with loops one after another, each of which builds a list from the one before."""
    lines, functions = [], []
    for number in range(count):
        lines += [
            f'%l{number} = "tf.TensorListReserve"(%shape, %n) <{{element_dtype = f32}}>'
            f" : (tensor<2xi32>, tensor<i32>) -> {LIST}",
            f'%i{number}, %s{number}, %x{number + 1} = "tf.While"(%n, %l{number}, %x{number}) <{{cond = @cond{number},'
            f" body = @body{number}, is_stateless = true, parallel_iterations = 10 : i64}}>"
            f" : (tensor<i32>, {LIST}, tensor<?x4xf32>) -> (tensor<i32>, {LIST}, tensor<?x4xf32>)",
        ]
        values = "\n".join(
            f'%y{at + 1} = "tf.Tanh"(%y{at}) : (tensor<?x4xf32>) -> tensor<?x4xf32>' for at in range(body_ops)
        )
        arguments = f"%i: tensor<i32>, %l: {LIST}, %y0: tensor<?x4xf32>"
        functions.append(f"""
        func.func private @cond{number}({arguments}) -> tensor<i1> {{
          %0 = "tf.Less"(%i, %i) : (tensor<i32>, tensor<i32>) -> tensor<i1>
          func.return %0 : tensor<i1>
        }}
        func.func private @body{number}({arguments}) -> (tensor<i32>, {LIST}, tensor<?x4xf32>) {{
          {values}
          %0 = "tf.TensorListSetItem"(%l, %i, %y{body_ops}) <{{resize_if_index_out_of_bounds = false}}>
            : ({LIST}, tensor<i32>, tensor<?x4xf32>) -> {LIST}
          func.return %i, %0, %y{body_ops} : tensor<i32>, {LIST}, tensor<?x4xf32>
        }}""")
    body = "\n".join(lines)
    return f"""
    func.func @main(%x0: tensor<?x4xf32>, %n: tensor<i32>) -> tensor<?x4xf32> {{
      %shape = "tf.Const"() <{{value = dense<[-1, 4]> : tensor<2xi32>}}> : () -> tensor<2xi32>
      {body}
      func.return %x{count} : tensor<?x4xf32>
    }}
    {"".join(functions)}"""


@pytest.mark.parametrize(("few", "many"), [((4, 10), (40, 10)), ((2, 100), (2, 1000))])
def test_ten_times_as_much_takes_ten_times_the_work(few: tuple[int, int], many: tuple[int, int]) -> None:
    check_linear(LowerTensorLists(), _loops(*few), _loops(*many), times=10)


def test_no_list_is_left() -> None:
    module = parse(_loops(3, 2))
    LowerTensorLists().apply(module)
    verify(module)
    assert not any("TensorList" in op.name for op in module.walk())
