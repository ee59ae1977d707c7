"""Types and attributes of `tf_type`, region forms, names and locations: text both ways, as TensorFlow's MLIR has it."""

from __future__ import annotations

import io

import pytest

from tfconvert.ops.verification import verify
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.printing import print_module
from tfconvert.schema.ir.errors import ParseError, VerifyError
from tfconvert.schema.ir.locations import CallSiteLoc, FileLineColLoc, NameLoc

TYPES = [
    *(f"!tf_type.{name}" for name in ("string", "qint8", "quint8", "qint16", "quint16", "qint32")),
    *(f"!tf_type.{name}ref" for name in ("f32", "f64", "half", "bfloat16", "bool", "int64", "uint8", "complex64")),
    *(f"!tf_type.{name}ref" for name in ("string", "qint8", "resource", "variant", "float8e5m2", "int4")),
    "!tf_type.resource",
    "!tf_type.resource<tensor<2x?xf32>>",
    "!tf_type.variant<tensor<2xf32>, tensor<*xi32>>",
    "f8E5M2",
    "f8E4M3FN",
    "ui4",
    "complex<f64>",
]

ATTRIBUTES = [
    "#tf_type.shape<2x?x3>",
    "#tf_type.shape<>",
    "#tf_type.shape<*>",
    "#tf_type.shape<0x1>",
    "#tf_type.func<@f, {T = f32, a = 1 : i64}>",
    '#tf_type.func<@"a/b", {}>',
    '#tf_type.placeholder<"T">',
    "!tf_type.f32ref",
    '"\\C3\\A9"',
    '"\\FF"',
    '@"a/b"',
    "{bad_consumers = [], producer = 1 : i32}",
    '#tf_type<tensor_proto : "0x746674656E736F722464747970653A2044545F56415249414E54"> : tensor<!tf_type.variant>',
]


def round_trip(text: str) -> str:
    stream = io.StringIO()
    module = IRParser(text).parse_module()
    verify(module)
    print_module(module, stream, elide=None)
    return stream.getvalue()


@pytest.mark.parametrize("type", TYPES)
def test_types(type: str) -> None:
    assert f"tensor<2x{type}>" in round_trip(f"func.func private @f(tensor<2x{type}>)")


def test_every_reference_type_has_its_own_name() -> None:
    names = {str(types.RefType.get(row.mlir)) for row in types.ELEMENT_TYPES}
    assert len(names) == len(types.ELEMENT_TYPES)
    assert {name.removeprefix("!tf_type.") for name in names} <= set(types.TYPES)
    with pytest.raises(ParseError, match="not registered"):
        round_trip("func.func private @f(tensor<2x!tf_type.f99ref>)")


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_attributes(attribute: str) -> None:
    assert f"tf.x = {attribute}" in round_trip(f"func.func private @f() attributes {{tf.x = {attribute}}}")


def test_opdef_attributes_are_properties_however_they_are_written() -> None:
    text = '%0 = "tf.Batch"(%x) {T = [f32], max_batch_size = 2 : i64, _private} : (tensor<1xf32>) -> tensor<?xf32>'
    module = IRParser(f"func.func @f(%x: tensor<1xf32>) {{ {text} return }}").parse_module()
    (op,) = (op for op in module.walk() if isinstance(op, tf.TFOp))
    assert (set(op.properties), set(op.attributes)) == ({"max_batch_size"}, {"_private"})


def test_ops_without_properties_print_attributes() -> None:
    text = '"tf.TensorListReserve"(%s, %n) {element_dtype = f32} : (tensor<2xi32>, tensor<i32>)'
    inside = f"%0 = {text} -> tensor<!tf_type.variant<tensor<*xf32>>>"
    printed = round_trip(f"func.func @f(%s: tensor<2xi32>, %n: tensor<i32>) {{ {inside} return }}")
    assert "{element_dtype = f32}" in printed
    assert "<{element_dtype" not in printed


def test_locations_may_be_defined_at_the_end() -> None:
    text = """
    module {
      func.func private @f() loc(#loc2)
    } loc(#loc)
    #loc = loc("x.py":1:2)
    #loc2 = loc(callsite(#loc3 at #loc))
    #loc3 = loc("name#loc2"(#loc))
    """.replace("\n    ", "\n")
    module = IRParser(text).parse_module()
    (function,) = module.ops
    assert isinstance(module.location, FileLineColLoc)
    assert isinstance(function.location, CallSiteLoc)
    assert isinstance(function.location.callee, NameLoc)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("module {\n} loc(#a)\n#a = loc(#a)\n", 3),
        ("module {\n} loc(#b)\n", 2),
        ("module {\n}\n#a = loc(7)\n", 3),
        ("module {\n}\n#a = loc(unknown)\n#a = loc(unknown)\n", 4),
    ],
)
def test_wrong_locations_are_refused_with_their_line(text: str, line: int) -> None:
    with pytest.raises(ParseError, match=f"file.mlir:{line}:"):
        IRParser(text, "file.mlir").parse_module()


def test_a_string_without_an_end_is_refused_at_once() -> None:
    text = f'"tf.A"() {{a = "{"no end" * 1000}}} : () -> ()'
    with pytest.raises(ParseError, match="expected a string that ends"):
        IRParser(text).parse_module()


IF = """
func.func @f(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = "tf.IfRegion"(%c) <{{is_stateless = true}}> ({{
    %1 = func.call @g(%x) : (tensor<2xf32>) -> tensor<2xf32>
    "tf.Yield"(%1) : (tensor<2xf32>) -> ()
  }}, {{
    {other}
  }}) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}}
func.func private @g(tensor<2xf32>) -> tensor<2xf32>
"""


def test_region_forms() -> None:
    assert '"tf.Yield"(' in round_trip(IF.format(other='"tf.Yield"(%x) : (tensor<2xf32>) -> ()'))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ('"tf.Yield"() : () -> ()', "expected 1 values"),
        ('"tf.Yield"(%c) : (tensor<i1>) -> ()', "must agree with"),
        ('%2 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>', "terminat"),
    ],
)
def test_region_forms_keep_their_rules(other: str, message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        round_trip(IF.format(other=other))
