"""Ops that no valid program has are refused with a reason, whatever their rows expect."""

from __future__ import annotations

import pytest

from tests.converter.from_stablehlo.programs import convert, program
from tfconvert.schema.diagnostics import ConversionError

_CALL = '"stablehlo.custom_call"({operands}) <{{call_target_name = "{name}"}}> {{{attributes}}}'
_TWO = ("tensor<2xf32>", "tensor<2xi32>")


def _refusal(op: str, operands: list[str], *results: str) -> ConversionError:
    """Returns the error about an op whose operands are the first arguments of a function."""
    kinds = results[0] if len(results) == 1 else f"({', '.join(results)})"
    names = ", ".join(f"%0#{index}" for index in range(len(results))) if len(results) > 1 else "%0"
    body = f"    %0{f':{len(results)}' if len(results) > 1 else ''} = {op} : ({', '.join(operands)}) -> {kinds}\n"
    with pytest.raises(ConversionError) as caught:
        convert(program(f"{body}    return {names} : {', '.join(results)}", operands, results))
    return caught.value


def _call(name: str, operands: str, attributes: str = "") -> str:
    return _CALL.format(name=name, operands=operands, attributes=attributes)


@pytest.mark.parametrize(
    ("name", "operands", "results"),
    [
        ("chlo.erf", [], ("tensor<2xf32>",)),
        ("chlo.erf", ["tensor<2xf32>"], ("tensor<2xf32>", "tensor<2xf32>")),
        ("stablehlo.dynamic_top_k", ["tensor<2xf32>"], _TWO),
        ("ApproxTopK", ["tensor<2xf32>"], _TWO),
        ("lapack_spotrf_ffi", [], ("tensor<2x2xf32>", "tensor<i32>")),
        ("Sharding", ["tensor<2xf32>"], ("tensor<2xf32>", "tensor<2xf32>")),
    ],
)
def test_calls_with_other_numbers_of_operands_or_results_are_refused(
    name: str, operands: list[str], results: tuple[str, ...]
) -> None:
    call = _call(name, ", ".join("%a" for _ in operands))
    problem = _refusal(call, operands, *results)
    assert problem.code == "unsupported-op"
    assert "another number of" in str(problem)


def test_calls_with_operands_of_other_types_are_refused() -> None:
    problem = _refusal(_call("chlo.erf", "%a"), ["tensor<2xi32>"], "tensor<2xi32>")
    assert "operands of other types" in str(problem)


@pytest.mark.parametrize("name", ["stablehlo.while", "stablehlo.compare", "stablehlo.reduce"])
def test_calls_do_not_stand_for_ops_with_regions_or_properties(name: str) -> None:
    problem = _refusal(_call(name, "%a"), ["tensor<2xf32>"], "tensor<2xf32>")
    assert f"there is no '{name}' in TensorFlow" in str(problem)


def test_letters_of_lapack_are_letters() -> None:
    call = _call("lapack_spotrf_ffi", "%a", "mhlo.backend_config = {uplo = -1 : i8}")
    assert "its uplo is no letter" in str(_refusal(call, ["tensor<2x2xf32>"], "tensor<2x2xf32>", "tensor<i32>"))


@pytest.mark.parametrize("kind", ["!quant.uniform<i8:f32, 0.5>", "f8E3M4"])
def test_elements_without_a_form_are_refused(kind: str) -> None:
    problem = _refusal('"stablehlo.tan"(%a)', [f"tensor<2x{kind}>"], f"tensor<2x{kind}>")
    assert problem.code == "unsupported-op"
    assert f"it has operands or results of type tensor<2x{kind}>" in str(problem)


def test_sizes_beyond_32_bits_are_refused() -> None:
    op = '"stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64: 1>}>'
    problem = _refusal(op, ["tensor<2xf32>"], "tensor<4294967296x2xf32>")
    assert problem.code == "absurd-shape"


def test_large_iotas_are_refused() -> None:
    problem = _refusal('"stablehlo.iota"() <{iota_dimension = 0 : i64}>', [], "tensor<2147483647xi32>")
    assert problem.code == "too-large-constants"


def test_results_of_another_type_are_refused() -> None:
    size = '"stablehlo.get_dimension_size"(%a) <{dimension = 0 : i64}>'
    problem = _refusal(size, ["tensor<2x?xf32>"], "tensor<f32>")
    assert problem.code == "shape-mismatch"
    assert "its result has the type tensor<f32>" in str(problem)


def test_results_of_other_sizes_than_an_operand_gives_are_refused() -> None:
    body = """    %h = stablehlo.constant dense<[1, 5]> : tensor<2xi32>
    %o = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    %s = stablehlo.add %h, %o : tensor<2xi32>
    %0 = "stablehlo.dynamic_broadcast_in_dim"(%a, %s) <{broadcast_dimensions = array<i64: 0>}>
        : (tensor<2xf32>, tensor<2xi32>) -> tensor<2x5xf32>
    return %0 : tensor<2x5xf32>"""
    with pytest.raises(ConversionError, match="it is given other sizes") as caught:
        convert(program(body, ["tensor<2xf32>"], ["tensor<2x5xf32>"]))
    assert caught.value.code == "shape-mismatch"


def test_scalars_are_not_sorted() -> None:
    op = (
        '"stablehlo.sort"(%a) <{dimension = 0 : i64}> ({\n    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n'
        '      %c = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction LT>}>'
        " : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        '      "stablehlo.return"(%c) : (tensor<i1>) -> ()\n    })'
    )
    assert "scalars have no order" in str(_refusal(op, ["tensor<f32>"], "tensor<f32>"))


@pytest.mark.parametrize("kind", ["tensor<0x1099511627776x9xi32>", "tensor<0x2147483647x2147483647x4xi32>"])
def test_absurd_numbers_of_elements_are_refused(kind: str) -> None:
    assert _refusal('"stablehlo.iota"() <{iota_dimension = 2 : i64}>', [], kind).code == "absurd-shape"


def test_bodies_that_compute_with_other_elements_are_refused() -> None:
    op = (
        '"stablehlo.reduce"(%a, %b) <{dimensions = array<i64: 0>}> ({\n    ^bb0(%x: tensor<i1>, %y: tensor<i1>):\n'
        '      %c = "stablehlo.and"(%x, %y) : (tensor<i1>, tensor<i1>) -> tensor<i1>\n'
        '      "stablehlo.return"(%c) : (tensor<i1>) -> ()\n    })'
    )
    problem = _refusal(op, ["tensor<4xf32>", "tensor<f32>"], "tensor<f32>")
    assert problem.code == "invalid-ir"
    assert "the arguments of a region of stablehlo.reduce" in str(problem)


def test_windows_with_too_many_elements_are_refused() -> None:
    less = '"stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction GE>}>'
    body = f"""    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.select_and_scatter"(%a, %b, %z) <{{window_dimensions = array<i64: 65536>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = {less} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%s) : (tensor<i1>) -> ()
    }}, {{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }}) : (tensor<65600xf32>, tensor<65xf32>, tensor<f32>) -> tensor<65600xf32>
    return %0 : tensor<65600xf32>"""
    with pytest.raises(ConversionError, match="more than 1024 elements"):
        convert(program(body, ["tensor<65600xf32>", "tensor<65xf32>"], ["tensor<65600xf32>"]))
