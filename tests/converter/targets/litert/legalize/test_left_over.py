"""Errors about ops that can't be legalized: one cause an op, causes before consequences, types, advice."""

from __future__ import annotations

import re

import pytest

from tests.support.run_text import parse
from tfconvert.converter.targets.litert.legalize.left_over import _BY_OP, advice, last_resort
from tfconvert.converter.targets.litert.passes.legalize import Legalize
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, texts_of
from tfconvert.schema.tensorflow import op_defs


def refusal(text: str) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        Legalize().apply(parse(text))
    return caught.value


def refused(text: str) -> list[Diagnostic]:
    return list(refusal(text).diagnostics)


_COMPLEX = """
func.func @main(%x: tensor<?x4xcomplex<f32>>, %y: tensor<4x3xcomplex<f32>>) -> tensor<?x3xcomplex<f32>> {
  %0 = "tf.MatMul"(%x, %y) <{transpose_b = false, transpose_a = true}> : (tensor<?x4xcomplex<f32>>, tensor<4x3xcomplex<f32>>) -> tensor<?x3xcomplex<f32>>
  %1 = "tf.Tanh"(%0) : (tensor<?x3xcomplex<f32>>) -> tensor<?x3xcomplex<f32>>
  %2 = "tf.Sin"(%1) : (tensor<?x3xcomplex<f32>>) -> tensor<?x3xcomplex<f32>>
  func.return %2 : tensor<?x3xcomplex<f32>>
}
"""  # noqa: E501


def test_an_element_type_that_no_kernel_takes_is_one_cause_with_consequences() -> None:
    cause, *consequences = refused(_COMPLEX)
    assert cause.op == "tf.MatMul"
    assert cause.message == "LiteRT computes it for f32, i32, i64, f16, bf16, not for complex<f32>"
    assert "real and imaginary" in cause.hint
    assert [each.op for each in consequences] == ["tf.Tanh", "tf.Sin"]
    assert {each.severity for each in consequences} == {"note"}
    assert "computed by tf.MatMul" in consequences[0].message
    assert not any(each.hint or each.signature for each in consequences)


def test_types_and_attributes_other_than_the_defaults_are_told() -> None:
    assert refused(_COMPLEX)[0].signature == (
        "(tensor<?x4xcomplex<f32>>, tensor<4x3xcomplex<f32>>) -> tensor<?x3xcomplex<f32>> {transpose_a = true}"
    )


def test_many_operands_are_not_all_shown() -> None:
    operands = ", ".join(["%x"] * 9)
    types = ", ".join(["tensor<f32>"] * 9)
    (problem,) = refused(f"""
    func.func @main(%x: tensor<f32>) -> tensor<f32> {{
      %0 = "tf.Frobnicate"({operands}) <{{words = ["a", "b"], rate = 0.5 : f32, kind = i64}}> : ({types}) -> tensor<f32>
      func.return %0 : tensor<f32>
    }}
    """)
    shown = ", ".join(["tensor<f32>"] * 6)
    assert problem.signature == (f'({shown}, and 3 more) -> tensor<f32> {{kind = i64, rate = 0.5, words = ["a", "b"]}}')
    assert problem.hint == last_resort(flex=False)


def test_what_takes_a_handle_is_a_consequence_of_the_handle() -> None:
    first, second = refused("""
    func.func @main(%x: tensor<2xi64>) -> () {
      %0 = "tf.MutableHashTableV2"() <{key_dtype = i64, value_dtype = i64, shared_name = "t"}> : () -> tensor<!tf_type.resource>
      "tf.LookupTableInsertV2"(%0, %x, %x) : (tensor<!tf_type.resource>, tensor<2xi64>, tensor<2xi64>) -> ()
      func.return
    }
    """)  # noqa: E501
    assert (first.op, first.severity) == ("tf.MutableHashTableV2", "error")
    assert (second.op, second.severity) == ("tf.LookupTableInsertV2", "note")


def test_ops_without_a_counterpart_are_causes_even_in_a_chain() -> None:
    problems = refused("""
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.BesselJ0"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.BesselK0"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %1 : tensor<2xf32>
    }
    """)
    assert [each.severity for each in problems] == ["error", "error"]
    first, second = texts_of(problems)
    assert "hint" not in first
    assert "approximate it" in second


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("ImageProjectiveTransformV3", "for inference"),
        ("DecodeJpeg", "pixels"),
        ("DecodeWav", "samples"),
        ("CTCGreedyDecoder", "argmax"),
        ("ParseExampleV2", "parse"),
        ("StringToHashBucketFast", "hash"),
        ("SparseReduceSum", "dense"),
        ("Conv3DBackpropInputV2", "inference"),
        ("Svd", "before or after"),
        ("FFT3D", "rfft"),
        ("BesselJ0", "approximate"),
        ("Dilation2D", "max_pool2d"),
        ("XlaSvd", "jit_compile"),
        ("CollectiveReduce", "one processor"),
        ("SaveV2", "another one take and assign"),
    ],
)
def test_advice_fits_the_op(op: str, words: str) -> None:
    assert words in advice(f"tf.{op}", "")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("LiteRT computes it for f32, not for complex<f32>", "real and imaginary"),
        ("LiteRT computes it for f32, not for string", "split, clean and hash"),
        ("LiteRT computes it for i32, not for ui16", "one of these types"),
        ("the input's rank is not known", "--input-shape"),
        ("the permutation is computed", "constant"),
    ],
)
def test_advice_fits_the_reason(reason: str, words: str) -> None:
    assert words in advice("tf.Pack", reason)


def test_nothing_is_advised_where_nothing_is_known() -> None:
    assert advice("tf.Frobnicate", "") == advice("tf.Pack", "data_format is NCDHW") == ""
    assert "--allow-flex" in last_resort(flex=True)
    assert "--allow-flex" not in last_resort(flex=False)


@pytest.mark.parametrize(
    ("layer", "is_augmentation"),
    [
        ("model/random_flip_1", True),
        ("random_rotation/stateless_uniform", True),
        ("random_features", False),
        ("", False),
    ],
)
def test_layers_that_augment_images_are_for_training(layer: str, is_augmentation: bool) -> None:
    assert ("for inference" in advice("tf.StatelessRandomUniformV2", "", layer)) == is_augmentation


def test_an_element_type_matters_more_than_the_op() -> None:
    assert "cast to float32" in advice("tf.Real", "LiteRT computes it for f32, not for f64")
    assert "after training" in advice("tf.QuantizeAndDequantizeV2", "its range is not a constant")


def test_all_advice_is_about_ops_that_there_are() -> None:
    for row in _BY_OP:
        assert any(re.fullmatch(row.pattern, name) for name in op_defs.names()), row.pattern
