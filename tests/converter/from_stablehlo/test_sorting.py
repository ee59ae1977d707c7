"""Sorts and the largest elements: LiteRT against numpy, with equal elements and those that are no numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converter.from_stablehlo.programs import convert, operators, program, results, type_of

Array = np.ndarray[Any, Any]
TIES = np.array([[3, 1, 2, 1, 3, -0.0, 0.0], [0, 0, 0, 1, 1, -1, 2]], np.float32)
NANS = np.array([[3, np.nan, -np.inf, 1, np.inf, -2, np.nan]], np.float32)
EXTREMES = np.array([[-(2**31), 2**31 - 1, 0, -1, 1, 0, -(2**31)]], np.int32)

CANONICAL = """
      %zero{n} = "stablehlo.constant"() <{{value = dense<0.0> : tensor<f32>}}> : () -> tensor<f32>
      %nan{n} = "stablehlo.constant"() <{{value = dense<0x7FC00000> : tensor<f32>}}> : () -> tensor<f32>
      %eq{n} = "stablehlo.compare"({of}, %zero{n}) <{{comparison_direction = #stablehlo<comparison_direction EQ>}}>
          : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %s{n} = "stablehlo.select"(%eq{n}, %zero{n}, {of}) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %ne{n} = "stablehlo.compare"({of}, {of}) <{{comparison_direction = #stablehlo<comparison_direction NE>}}>
          : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %c{n} = "stablehlo.select"(%ne{n}, %nan{n}, %s{n}) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>"""


def _compare(name: str, direction: str, one: str, other: str, element: str) -> str:
    return f"""
      {name} = "stablehlo.compare"({one}, {other})
          <{{comparison_direction = #stablehlo<comparison_direction {direction}>}}>
          : ({element}, {element}) -> tensor<i1>"""


def _comparator(direction: str, element: str) -> str:
    """Returns the body that compares the first operand's elements, as JAX writes it."""
    if element != "tensor<f32>":
        return _compare("%less", direction, "%l0", "%r0", element)
    canonical = CANONICAL.format(n=0, of="%l0") + CANONICAL.format(n=1, of="%r0")
    return canonical + _compare("%less", direction, "%c0", "%c1", element)


def _sort(arrays: list[Array], body: str, axis: int = 1) -> str:
    kinds = [type_of(each) for each in arrays]
    elements = [type_of(np.zeros((), each.dtype)) for each in arrays]
    arguments = ", ".join(f"%l{n}: {element}, %r{n}: {element}" for n, element in enumerate(elements))
    names = ", ".join(f"%{letter}" for letter in "abc"[: len(arrays)])
    found = ", ".join(f"%0#{n}" for n in range(len(arrays))) if len(arrays) > 1 else "%0"
    return program(
        f"""    %0{f":{len(arrays)}" if len(arrays) > 1 else ""} = "stablehlo.sort"({names}) <{{
        dimension = {axis} : i64, is_stable = true}}> ({{
    ^bb0({arguments}):{body}
      "stablehlo.return"(%less) : (tensor<i1>) -> ()
    }}) : ({", ".join(kinds)}) -> ({", ".join(kinds)})
    return {found} : {", ".join(kinds)}""",
        kinds,
        kinds,
    )


@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int16", "int32", "uint32", "int64", "bool"])
def test_sorts(dtype: str, axis: int, direction: str) -> None:
    """Wherever two sorts order equal elements differently, those are the same."""
    x = EXTREMES.astype(dtype) if dtype[-1].isdigit() and "int" in dtype else TIES.astype(dtype)
    element = type_of(np.zeros((), x.dtype))
    body = _comparator(direction, element)
    (found,) = results(_sort([x], body, axis), x)
    expected = np.sort(x, axis)
    np.testing.assert_array_equal(found, np.flip(expected, axis) if direction.startswith("G") else expected)


def test_what_is_no_number_comes_last() -> None:
    (found,) = results(_sort([NANS], _comparator("LT", "tensor<f32>")), NANS)
    np.testing.assert_array_equal(found, np.sort(NANS))


@pytest.mark.parametrize("x", [TIES, NANS, EXTREMES], ids=["ties", "nan", "extremes"])
def test_other_operands_follow_the_first_one_stably(x: Array) -> None:
    other = np.arange(x.size, dtype=np.float32).reshape(x.shape)
    whole = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    body = _comparator("LT", type_of(np.zeros((), x.dtype)))
    found = results(_sort([x, other, whole], body), x, other, whole)
    order = np.argsort(x, axis=1, kind="stable")
    for result, array in zip(found, (x, other, whole), strict=True):
        np.testing.assert_array_equal(result, np.take_along_axis(array, order, 1))


@pytest.mark.parametrize("from_end", [False, True])
def test_positions_are_those_of_the_largest_elements(from_end: bool) -> None:
    numbers = np.arange(7, dtype=np.int32)
    numbers = numbers[::-1] if from_end else numbers
    text = _sort([TIES, np.zeros(TIES.shape, np.int32)], _comparator("LT", "tensor<f32>"))
    constant = f"""    %b = "stablehlo.constant"() <{{value = dense<{[numbers.tolist()] * 2}> : tensor<2x7xi32>}}>
        : () -> tensor<2x7xi32>
"""
    text = text.replace(", %b: tensor<2x7xi32>", "").replace("    %0:2", constant + "    %0:2")
    found = results(text, TIES)[1]
    np.testing.assert_array_equal(found, numbers[np.argsort(TIES, axis=1, kind="stable")])
    assert "GATHER" not in operators(convert(text))


def test_two_keys() -> None:
    first, second = TIES, np.flip(TIES, 1).copy()
    canonical = "".join(CANONICAL.format(n=n, of=of) for n, of in enumerate(("%l0", "%r0", "%l1", "%r1")))
    body = canonical + "".join(
        _compare(name, direction, one, other, "tensor<f32>")
        for name, direction, one, other in (
            ("%first", "LT", "%c0", "%c1"),
            ("%same", "EQ", "%c0", "%c1"),
            ("%second", "LT", "%c2", "%c3"),
        )
    )
    body += """
      %both = "stablehlo.and"(%same, %second) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %less = "stablehlo.or"(%first, %both) : (tensor<i1>, tensor<i1>) -> tensor<i1>"""
    found = results(_sort([first, second], body), first, second)
    for row in range(len(first)):
        order = np.lexsort((second[row], first[row]))
        np.testing.assert_array_equal(found[0][row], first[row][order])
        np.testing.assert_array_equal(found[1][row], second[row][order])


def test_a_comparator_that_is_not_known_is_refused() -> None:
    body = """
      %n = "stablehlo.negate"(%l0) : (tensor<f32>) -> tensor<f32>""" + _compare(
        "%less", "LT", "%n", "%r0", "tensor<f32>"
    )
    with pytest.raises(Exception, match=r"stablehlo\.sort can't be converted: its comparator isn't a known one"):
        convert(_sort([TIES], body))


CALLS = {
    "composite": """    %0:2 = "stablehlo.composite"(%a) <{composite_attributes = {k = 3 : i64},
        decomposition = @top, name = "chlo.top_k", version = 1 : i32}>""",
    "chlo": '    %0:2 = "chlo.top_k"(%a) <{k = 3 : i64}>',
    "mhlo": """    %0:2 = "stablehlo.custom_call"(%a) <{api_version = 1 : i32, call_target_name = "mhlo.topk"}>
        {mhlo.attributes = {k = 3 : i64, largest = true}, mhlo.version = 1 : i64}""",
}


@pytest.mark.parametrize("name", CALLS)
def test_the_largest_elements(name: str) -> None:
    text = program(
        f"""{CALLS[name]} : (tensor<2x7xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
    return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32>""",
        ["tensor<2x7xf32>"],
        ["tensor<2x3xf32>", "tensor<2x3xi32>"],
    )
    if name == "composite":
        text = (
            text.rstrip()[:-1]
            + """  func.func private @top(%a: tensor<2x7xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
    %0:2 = "chlo.top_k"(%a) <{k = 3 : i64}> : (tensor<2x7xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
    return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32>
  }
}
"""
        )
    values, indices = results(text, TIES)
    order = np.argsort(-TIES, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(values, np.take_along_axis(TIES, order, 1))
    np.testing.assert_array_equal(indices, order)
    assert operators(convert(text)) == {"TOPK_V2": 1}


@pytest.mark.parametrize(("worst", "sign"), [("0xFF800000", -1), ("0x7F800000", 1)], ids=["largest", "smallest"])
def test_approximations_are_exact(worst: str, sign: int) -> None:
    text = program(
        f"""    %i = "stablehlo.iota"() <{{iota_dimension = 1 : i64}}> : () -> tensor<2x7xi32>
    %w = "stablehlo.constant"() <{{value = dense<{worst}> : tensor<f32>}}> : () -> tensor<f32>
    %m = "stablehlo.constant"() <{{value = dense<-1> : tensor<i32>}}> : () -> tensor<i32>
    %0:2 = "stablehlo.custom_call"(%a, %i, %w, %m) <{{api_version = 4 : i32, call_target_name = "ApproxTopK"}}>
        {{mhlo.backend_config = {{aggregate_to_topk = true, is_fallback = true, recall_target = 0.95 : f32,
        reduction_dim = 1 : i64, reduction_input_size_override = -1 : i64, top_k = 3 : i64}}}}
        : (tensor<2x7xf32>, tensor<2x7xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
    return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32>""",
        ["tensor<2x7xf32>"],
        ["tensor<2x3xf32>", "tensor<2x3xi32>"],
    )
    values, indices = results(text, TIES)
    order = np.argsort(sign * TIES, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(values, np.take_along_axis(TIES, order, 1))
    np.testing.assert_array_equal(indices, order)


def test_shapes_of_approximate_maxima() -> None:
    kinds = ["tensor<?x3xf32>", "tensor<?x3xi32>"]
    text = program(
        f"""    %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x7xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %seven = stablehlo.constant dense<7> : tensor<1xi32>
    %three = stablehlo.constant dense<3> : tensor<1xi32>
    %from = stablehlo.concatenate %n1, %seven, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %to = stablehlo.concatenate %n1, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %i = stablehlo.dynamic_iota %from, dim = 1 : (tensor<2xi32>) -> tensor<?x7xi32>
    %w = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %m = stablehlo.constant dense<-1> : tensor<i32>
    %0:2 = "stablehlo.custom_call"(%a, %i, %w, %m, %to, %to) <{{call_target_name = "ApproxTopK"}}>
        {{indices_of_shape_operands = dense<[4, 5]> : tensor<2xi64>, mhlo.backend_config = {{aggregate_to_topk = true,
        is_fallback = true, recall_target = 0.95 : f32, reduction_dim = 1 : i64, top_k = 3 : i64}}}}
        : (tensor<?x7xf32>, tensor<?x7xi32>, tensor<f32>, tensor<i32>, tensor<2xi32>, tensor<2xi32>)
        -> ({", ".join(kinds)})
    return %0#0, %0#1 : {", ".join(kinds)}""",
        ["tensor<?x7xf32>"],
        kinds,
    )
    assert operators(convert(text)) == {"TOPK_V2": 1}
    _, indices = results(text, TIES)
    np.testing.assert_array_equal(indices, np.argsort(-TIES, axis=1, kind="stable")[:, :3])
