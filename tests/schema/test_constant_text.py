"""Constants as text: they round-trip with the same bits, in forms that TensorFlow's MLIR takes."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tensorflow as tf_oracle
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tensorflow.core.framework import tensor_pb2

from tests.mlir import oracle
from tfconvert.schema.dialects import tensor_data, tf, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.printing import print_module
from tfconvert.schema.dialects.tensor_data import DenseResourceAttr
from tfconvert.schema.dialects.types import ElementType
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.errors import ParseError
from tfconvert.schema.ir.types import FunctionType

WRITABLE = [row for row in types.ELEMENT_TYPES if row.name not in ("resource", "variant")]

# Bits of a value that are free, where they don't fill a byte.
_BITS = {"bool": 1, "int2": 1, "uint2": 2, "int4": 3, "uint4": 4}


def module_of(constant: tensor_data.Constant) -> ModuleOp:
    op = tf.constant(constant)
    block = Block((op, ReturnOp.of(op.results)))
    return ModuleOp.of([FuncOp.of("f", FunctionType.get((), (constant.type,)), Region(block))])


def printed(module: ModuleOp, elide: int | None = None) -> str:
    stream = io.StringIO()
    print_module(module, stream, elide=elide)
    return stream.getvalue()


def constant_in(text: str) -> tensor_data.Constant:
    module = IRParser(text).parse_module()
    (op,) = (op for op in module.walk() if op.name == "tf.Const")
    value = op.properties["value"]
    assert tensor_data.is_constant(value)
    return value


def parsed(literal: str, type: str) -> np.ndarray:
    constant = f'%0 = "tf.Const"() <{{value = {literal} : {type}}}> : () -> {type}'
    text = f"func.func @f() -> {type} {{ {constant} return %0 : {type} }}"
    return tensor_data.to_array(constant_in(text))


def _proto(text: str) -> str:
    return f'#tf_type<tensor_proto : "0x{(b"tftensor$" + text.encode()).hex()}">'


@st.composite
def values(draw: st.DrawFn) -> tuple[np.ndarray, ElementType]:
    row = draw(st.sampled_from(WRITABLE))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12))
    count = int(np.prod(shape))
    if row.dtype.kind == "O":
        flat = np.empty(count, object)
        flat[:] = draw(st.lists(st.binary(max_size=4), min_size=count, max_size=count))
        return flat.reshape(shape), row
    bits = draw(st.binary(min_size=count * row.dtype.itemsize, max_size=count * row.dtype.itemsize))
    if row.name in _BITS:
        return (np.frombuffer(bits, np.uint8) >> (8 - _BITS[row.name])).astype(row.dtype).reshape(shape), row
    return np.frombuffer(bits, row.dtype).reshape(shape), row


@given(values())
def test_every_value_is_read_back_with_its_bits(value: tuple[np.ndarray, ElementType]) -> None:
    array, row = value
    constant = tensor_data.of_array(array, row.mlir)
    text = printed(module_of(constant))
    got = constant_in(text)
    assert (type(got), got.type) == (type(constant), constant.type)
    read = tensor_data.to_array(got)
    assert (read.tolist() if row.dtype.kind == "O" else read.tobytes()) == (
        array.tolist() if row.dtype.kind == "O" else array.tobytes()
    )
    assert printed(module_of(got)) == text


@pytest.mark.parametrize(
    ("literal", "type", "expected"),
    [
        ("dense<3>", "tensor<2x2xi32>", [[3, 3], [3, 3]]),
        ("dense<[[1, -2], [3, 4]]>", "tensor<2x2xi8>", [[1, -2], [3, 4]]),
        ("dense<[200, 1]>", "tensor<2xi8>", [-56, 1]),
        ("dense<>", "tensor<0x3xf32>", np.zeros((0, 3)).tolist()),
        ("dense<[]>", "tensor<0xi32>", []),
        ("dense<[true, false]>", "tensor<2xi1>", [True, False]),
        ('dense<"0x0502">', "tensor<10xi1>", [True, False, True, *[False] * 6, True]),
        ('dense<"0xFF">', "tensor<20xi1>", [True] * 20),
        ('dense<"0x0000803F">', "tensor<3xf32>", [1.0, 1.0, 1.0]),
        ('dense<"0x010F07">', "tensor<3xi4>", [1, -1, 7]),
        ("dense<0x7F800000>", "tensor<f32>", np.inf),
        ("dense<(1.0,-2.0)>", "tensor<1xcomplex<f32>>", [1 - 2j]),
        (r'dense<["a\22\\", "\00\FF"]>', "tensor<2x!tf_type.string>", [b'a"\\', b"\x00\xff"]),
        ('dense<"0x00">', "tensor<1x!tf_type.string>", [b"0x00"]),
    ],
)
def test_forms_of_mlir_are_read(literal: str, type: str, expected: object) -> None:
    assert parsed(literal, type).tolist() == expected


@pytest.mark.parametrize(
    ("literal", "type", "message"),
    [
        ("dense<[1, 2]>", "tensor<3xi32>", "expected elements of shape"),
        ("dense<[1, [2]]>", "tensor<2xi32>", "equal depth"),
        ("dense<[[1], [2, 3]]>", "tensor<2x1xi32>", "equal length"),
        ("dense<[1,]>", "tensor<1xi32>", "expected a number"),
        ("dense<300>", "tensor<i8>", "elements of type i8"),
        ("dense<-1>", "tensor<ui8>", "elements of type ui8"),
        ("dense<1.5>", "tensor<i8>", "elements of type i8"),
        ('dense<"0x00">', "tensor<2xf32>", "don't fill"),
        ('dense<"0x0z">', "tensor<1xi8>", "hexadecimal"),
        ("dense<0>", "tensor<999999x999999xf32>", "at most"),
        ("dense<0>", "tensor<?xf32>", "static shape"),
        ("dense<0>", f"tensor<{'1x' * 65}i32>", "at most 64 dimensions"),
        ('dense<"0x00000000">', f"tensor<{'1x' * 5000}i32>", "at most 64 dimensions"),
        (_proto("dtype: DT_QINT8 int_val: 1"), "tensor<999999x999999x!tf_type.qint8>", "at most 1073741824 bytes"),
        (_proto("dtype: DT_QINT8 int_val: 1"), f"tensor<{'1x' * 65}!tf_type.qint8>", "at most 64 dimensions"),
        ("dense<0>", "tensor<!tf_type.resource>", "numbers or strings"),
        ('#tf_type<tensor_proto : "0x00">', "tensor<1x!tf_type.qint8>", "not a tensor"),
        ('#tf_type<tensor_proto : "00">', "tensor<1x!tf_type.qint8>", "begins with 0x"),
        ('#tf_type<tensor_proto : "0x0z">', "tensor<1x!tf_type.qint8>", "expected hexadecimal digits"),
        (_proto("dtype:"), "tensor<1x!tf_type.qint8>", "not a tensor"),
        (_proto("dtype: DT_INT8"), "tensor<1x!tf_type.qint8>", "another element type"),
        (_proto("dtype: DT_QINT8 int_val: [1, 2]"), "tensor<1x!tf_type.qint8>", "another size"),
        (_proto('dtype: DT_QINT8 tensor_content: "ab"'), "tensor<1x!tf_type.qint8>", "another size"),
        (_proto("dtype: DT_COMPLEX64 scomplex_val: [1, 2, 3]"), "tensor<2xcomplex<f32>>", "another size"),
    ],
)
def test_wrong_constants_are_refused_with_their_place(literal: str, type: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parsed(literal, type)


@pytest.mark.parametrize(
    ("dtype", "contents", "element"),
    [
        ("DT_COMPLEX64", "scomplex_val: [1, -2, 3, 4]", "complex<f32>"),
        ("DT_COMPLEX64", "", "complex<f32>"),
        ("DT_COMPLEX128", "dcomplex_val: [1, -2, 3, 4, 5, 6]", "complex<f64>"),
        ("DT_QUINT8", "int_val: [1, 200]", "!tf_type.quint8"),
        ("DT_QINT32", r'tensor_content: "\001\000\000\000\002\000\000\000\003\000\000\000"', "!tf_type.qint32"),
        ("DT_INT16", "int_val: -7", "i16"),
        ("DT_INT64", "int64_val: [1, -5000000000]", "i64"),
        ("DT_UINT32", "uint32_val: [4000000000]", "ui32"),
        ("DT_UINT64", "uint64_val: [1, 10000000000000000000]", "ui64"),
    ],
)
def test_tensors_are_read_as_tensorflow_reads_them(dtype: str, contents: str, element: str) -> None:
    text = f"dtype: {dtype} tensor_shape {{ dim {{ size: 3 }} }} {contents}"
    expected = tf_oracle.make_ndarray(text_format.Parse(text, tensor_pb2.TensorProto()))
    numbers = expected[expected.dtype.names[0]] if expected.dtype.names else expected
    assert parsed(_proto(text), f"tensor<3x{element}>").tolist() == numbers.tolist()


def test_brackets_nest_without_recursion() -> None:
    with pytest.raises(ParseError) as caught:
        parsed(f"dense<{'[' * 50_000}1>", "tensor<1xi32>")
    assert "Expected ']'" in caught.value.message


def test_large_constants_are_left_out_on_demand() -> None:
    module = module_of(tensor_data.of_array(np.arange(1000, dtype=np.float32)))
    assert "dense_resource<__elided__>" in str(module)
    text = printed(module, elide=10)
    assert len(text) < 500
    (op,) = (op for op in IRParser(text).parse_module().walk() if op.name == "tf.Const")
    assert isinstance(op.properties["value"], DenseResourceAttr)
    assert "__elided__" not in printed(module, elide=1000)
    assert "__elided__" not in str(module_of(tensor_data.of_array(np.array([b"small"], object))))


def test_resources_of_a_file_are_constants() -> None:
    text = """
    func.func @f() -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense_resource<w> : tensor<2xf32>}> : () -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    {-# dialect_resources: { builtin: { w: "0x040000000000803F00000040" } } #-}
    """
    for _ in range(2):  # a file's resources are its own
        module = IRParser(text).parse_module()
        (op,) = (op for op in module.walk() if op.name == "tf.Const")
        assert tensor_data.to_array(op.properties["value"]).tolist() == [1, 2]


def test_resources_of_too_many_dimensions_are_refused() -> None:
    kind = f"tensor<{'1x' * 65}f32>"
    text = f"""
    func.func @f() -> {kind} {{
      %0 = "tf.Const"() <{{value = dense_resource<w> : {kind}}}> : () -> {kind}
      return %0 : {kind}
    }}
    {{-# dialect_resources: {{ builtin: {{ w: "0x040000000000803F" }} }} #-}}
    """
    with pytest.raises(ParseError, match="at most 64 dimensions"):
        IRParser(text).parse_module()


@pytest.mark.slow
def test_tensorflow_takes_every_element_type() -> None:
    pytest.importorskip("tensorflow")
    texts = {"wrong": printed(module_of(tensor_data.of_array(np.ones(2, np.int8)))).replace("dense<1>", "dense<[1]>")}
    rng = np.random.default_rng(0)
    for row in WRITABLE:
        if row.name == "int2":  # which TensorFlow's MLIR has no tensors of
            continue
        for size in (0, 1, 3, 200):
            numbers = rng.integers(0, 2 if row.name == "bool" else 7, size)
            array = np.array([b"\x00a\xff"] * size, object) if row.dtype.kind == "O" else numbers.astype(row.dtype)
            texts[f"{row.name} {size}"] = printed(module_of(tensor_data.of_array(array, row.mlir)))
    assert list(oracle.problems(texts)) == ["wrong"]


def test_numbers_beyond_a_type_are_infinite() -> None:
    (value,) = parsed("dense<[1.0e39]>", "tensor<1xf32>")
    assert value == np.inf
