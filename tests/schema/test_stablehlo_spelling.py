"""StableHLO in the forms that MLIR prints: each is the same module as its generic form."""

from __future__ import annotations

import pytest

from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.ir.builtin import ModuleOp

ARGUMENTS = {
    "x": "tensor<4x6xf32>",
    "y": "tensor<4x6xf32>",
    "open": "tensor<?x6xf32>",
    "one": "tensor<f32>",
    "n": "tensor<i32>",
    "mask": "tensor<4x6xi1>",
    "size": "tensor<2xi32>",
    "image": "tensor<1x8x8x2xf32>",
    "kernel": "tensor<3x3x2x5xf32>",
    "c": "tensor<4xcomplex<f32>>",
}
X, OPEN, ONE, IMAGE, KERNEL = (ARGUMENTS[name] for name in ("x", "open", "one", "image", "kernel"))


def module_of(body: str) -> ModuleOp:
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in ARGUMENTS.items())
    return import_mlir(
        f"""
        func.func @main({arguments}) {{
          {body}
          return
        }}
        func.func private @g(%a: {ONE}) -> {ONE} {{ return %a : {ONE} }}
        """
    )


def text_of(body: str) -> str:
    module = module_of(body)
    for op in module.walk():
        op.properties = dict(sorted(op.properties.items()))
    return str(module)


SAME = [
    (f"stablehlo.add %x, %y : {X}", f'"stablehlo.add"(%x, %y) : ({X}, {X}) -> {X}'),
    (
        f"stablehlo.add %x, %open {{a = 1 : i32}} : ({X}, {OPEN}) -> {X}",
        f'"stablehlo.add"(%x, %open) {{a = 1 : i32}} : ({X}, {OPEN}) -> {X}',
    ),
    (
        f"stablehlo.exponential %x {{result_accuracy = #stablehlo.result_accuracy<mode ="
        f" #stablehlo.result_accuracy_mode<HIGHEST>>}} : {X}",
        f'"stablehlo.exponential"(%x) <{{result_accuracy = #stablehlo.result_accuracy<mode ='
        f" #stablehlo.result_accuracy_mode<HIGHEST>>}}> : ({X}) -> {X}",
    ),
    (f"stablehlo.clamp %one, %x, %one : ({ONE}, {X}, {ONE}) -> {X}", None),
    (f"stablehlo.clamp %one,%x ,  %one  : ({ONE}, {X}, {ONE}) -> {X}", None),
    (
        f"%r:2 = stablehlo.optimization_barrier %x, %y : {X}, {X}\nstablehlo.add %r#1, %x : {X}\n"
        f"stablehlo.add %x, %r#0 : {X}\nstablehlo.reverse %r#1, dims = [0] : {X}",
        f'%r:2 = "stablehlo.optimization_barrier"(%x, %y) : ({X}, {X}) -> ({X}, {X})\n'
        f'"stablehlo.add"(%r#1, %x) : ({X}, {X}) -> {X}\n"stablehlo.add"(%x, %r#0) : ({X}, {X}) -> {X}\n'
        f'"stablehlo.reverse"(%r#1) <{{dimensions = array<i64: 0>}}> : ({X}) -> {X}',
    ),
    (
        f"stablehlo.broadcast_in_dim %one, dims = [] : ({ONE}) -> {X}",
        f'"stablehlo.broadcast_in_dim"(%one) <{{broadcast_dimensions = array<i64>}}> : ({ONE}) -> {X}',
    ),
    (
        f"stablehlo.broadcast %one, sizes = [4, 6] : ({ONE}) -> {X}",
        f'"stablehlo.broadcast"(%one) <{{broadcast_sizes = array<i64: 4, 6>}}> : ({ONE}) -> {X}',
    ),
    (
        f"stablehlo.dynamic_broadcast_in_dim %one, %size, dims = [] : ({ONE}, tensor<2xi32>) -> {OPEN}",
        f'"stablehlo.dynamic_broadcast_in_dim"(%one, %size) <{{broadcast_dimensions = array<i64>}}>'
        f" : ({ONE}, tensor<2xi32>) -> {OPEN}",
    ),
    (
        f"stablehlo.compare GE, %x, %y, FLOAT : ({X}, {X}) -> tensor<4x6xi1>",
        f'"stablehlo.compare"(%x, %y) <{{comparison_direction = #stablehlo<comparison_direction GE>, compare_type ='
        f" #stablehlo<comparison_type FLOAT>}}> : ({X}, {X}) -> tensor<4x6xi1>",
    ),
    (
        f"stablehlo.compare EQ, %x, %y : ({X}, {X}) -> tensor<4x6xi1>",
        f'"stablehlo.compare"(%x, %y) <{{comparison_direction = #stablehlo<comparison_direction EQ>}}>'
        f" : ({X}, {X}) -> tensor<4x6xi1>",
    ),
    (
        f"stablehlo.concatenate %x, %y, dim = 1 : ({X}, {X}) -> tensor<4x12xf32>",
        f'"stablehlo.concatenate"(%x, %y) <{{dimension = 1 : i64}}> : ({X}, {X}) -> tensor<4x12xf32>',
    ),
    ("stablehlo.iota dim = 0 : tensor<3xi32>", '"stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3xi32>'),
    (
        f"stablehlo.pad %x, %one, low = [-1, 0], high = [0, 1], interior = [0, 2] : ({X}, {ONE}) -> tensor<3x17xf32>",
        f'"stablehlo.pad"(%x, %one) <{{edge_padding_low = array<i64: -1, 0>, edge_padding_high = array<i64: 0, 1>,'
        f" interior_padding = array<i64: 0, 2>}}> : ({X}, {ONE}) -> tensor<3x17xf32>",
    ),
    (
        f"stablehlo.reverse %x, dims = [0, 1] : {X}",
        f'"stablehlo.reverse"(%x) <{{dimensions = array<i64: 0, 1>}}> : ({X}) -> {X}',
    ),
    (
        f"stablehlo.transpose %x, dims = [1, 0] : ({X}) -> tensor<6x4xf32>",
        f'"stablehlo.transpose"(%x) <{{permutation = array<i64: 1, 0>}}> : ({X}) -> tensor<6x4xf32>',
    ),
    (
        f"stablehlo.slice %x [1:4, 0:6:2] : ({X}) -> tensor<3x3xf32>",
        f'"stablehlo.slice"(%x) <{{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 4, 6>, strides ='
        f" array<i64: 1, 2>}}> : ({X}) -> tensor<3x3xf32>",
    ),
    (
        f"stablehlo.dynamic_slice %x, %n, %n, sizes = [2, 3] : ({X}, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>",
        f'"stablehlo.dynamic_slice"(%x, %n, %n) <{{slice_sizes = array<i64: 2, 3>}}>'
        f" : ({X}, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>",
    ),
    (
        f"stablehlo.dynamic_slice %one, , sizes = [] : ({ONE}) -> {ONE}",
        f'"stablehlo.dynamic_slice"(%one) <{{slice_sizes = array<i64>}}> : ({ONE}) -> {ONE}',
    ),
    (
        f"stablehlo.get_dimension_size %open, dim = 0 : ({OPEN}) -> tensor<i32>",
        f'"stablehlo.get_dimension_size"(%open) <{{dimension = 0 : i64}}> : ({OPEN}) -> tensor<i32>',
    ),
    (
        f"stablehlo.reduce_precision %x, format = e8m7 : {X}",
        f'"stablehlo.reduce_precision"(%x) <{{exponent_bits = 8 : i32, mantissa_bits = 7 : i32}}> : ({X}) -> {X}',
    ),
    (
        "stablehlo.fft %c, type = IFFT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>",
        '"stablehlo.fft"(%c) <{fft_type = #stablehlo<fft_type IFFT>, fft_length = array<i64: 4>}>'
        " : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>",
    ),
    (
        "stablehlo.complex %x, %y : tensor<4x6xcomplex<f32>>",
        f'"stablehlo.complex"(%x, %y) : ({X}, {X}) -> tensor<4x6xcomplex<f32>>',
    ),
    (
        f"stablehlo.select %mask, %x, %y : tensor<4x6xi1>, {X}",
        f'"stablehlo.select"(%mask, %x, %y) : (tensor<4x6xi1>, {X}, {X}) -> {X}',
    ),
    (
        "stablehlo.optimization_barrier %x, %n : tensor<4x6xf32>, tensor<i32>",
        f'"stablehlo.optimization_barrier"(%x, %n) : ({X}, tensor<i32>) -> ({X}, tensor<i32>)',
    ),
    (
        f"stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision ="
        f" [HIGH, DEFAULT] : ({X}, {X}) -> tensor<4xf32>",
        f'"stablehlo.dot_general"(%x, %y) <{{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0],'
        f" rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>,"
        f" precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]}}> : ({X}, {X})"
        f" -> tensor<4xf32>",
    ),
    (
        f"stablehlo.dot_general %x, %y, contracting_dims = [0, 1] x [0, 1], algorithm = <lhs_precision_type = tf32,"
        f" rhs_precision_type = tf32> : ({X}, {X}) -> {ONE}",
        f'"stablehlo.dot_general"(%x, %y) <{{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions ='
        f" [0, 1], rhs_contracting_dimensions = [0, 1]>, algorithm = #stablehlo.dot_algorithm<lhs_precision_type ="
        f" tf32, rhs_precision_type = tf32>}}> : ({X}, {X}) -> {ONE}",
    ),
    (
        f"stablehlo.convolution(%image, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window ="
        f" {{stride = [2, 1], pad = [[1, 1], [0, 2]], rhs_dilate = [1, 1], reverse = [false, false]}}"
        f" {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({IMAGE}, {KERNEL}) -> tensor<1x4x8x5xf32>",
        f'"stablehlo.convolution"(%image, %kernel) <{{dimension_numbers ='
        f" #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, window_strides = array<i64: 2, 1>, padding ="
        f" dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 1>, window_reversal ="
        f" array<i1: false, false>, batch_group_count = 1 : i64, feature_group_count = 1 : i64}}>"
        f" : ({IMAGE}, {KERNEL}) -> tensor<1x4x8x5xf32>",
    ),
    (
        f'stablehlo.custom_call @"a b"(%one) {{api_version = 4 : i32, kept = #sdy.rule<([i])->([i]) {{i=2}}, custom>}}'
        f" : ({ONE}) -> {ONE}",
        f'"stablehlo.custom_call"(%one) <{{call_target_name = "a b", api_version = 4 : i32}}>'
        f" {{kept = #sdy.rule<([i])->([i]) {{i=2}}, custom>}} : ({ONE}) -> {ONE}",
    ),
    (
        f'stablehlo.composite "my.op" %one {{composite_attributes = {{k = 1 : i64}}, decomposition = @g}}'
        f" : ({ONE}) -> {ONE}",
        f'"stablehlo.composite"(%one) <{{name = "my.op", composite_attributes = {{k = 1 : i64}}, decomposition = @g}}>'
        f" : ({ONE}) -> {ONE}",
    ),
    (
        f"stablehlo.reduce(%x init: %one) applies stablehlo.maximum across dimensions = [1] : ({X}, {ONE})"
        f" -> tensor<4xf32>",
        f'"stablehlo.reduce"(%x, %one) <{{dimensions = array<i64: 1>}}> ({{ ^bb0(%97: {ONE}, %98: {ONE}):'
        f' %99 = "stablehlo.maximum"(%97, %98) : ({ONE}, {ONE}) -> {ONE} "stablehlo.return"(%99) : ({ONE}) -> () }})'
        f" : ({X}, {ONE}) -> tensor<4xf32>",
    ),
    (
        f"stablehlo.reduce(%x init: %one), (%y init: %one) across dimensions = [0, 1] : ({X}, {X}, {ONE}, {ONE}) ->"
        f" ({ONE}, {ONE}) reducer(%p: {ONE}, %r: {ONE}) (%q: {ONE}, %s: {ONE})"
        f" {{ stablehlo.return %r, %q : {ONE}, {ONE} }}",
        f'"stablehlo.reduce"(%x, %y, %one, %one) <{{dimensions = array<i64: 0, 1>}}> ({{ ^bb0(%p: {ONE}, %q: {ONE},'
        f' %r: {ONE}, %s: {ONE}): "stablehlo.return"(%r, %q) : ({ONE}, {ONE}) -> () }})'
        f" : ({X}, {X}, {ONE}, {ONE}) -> ({ONE}, {ONE})",
    ),
    (
        f"stablehlo.while(%i = %n, %v = %one) : tensor<i32>, {ONE} attributes {{mark}} cond {{"
        " %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>"
        f" stablehlo.return %t : tensor<i1> }} do {{ %w = func.call @g(%v) : ({ONE}) -> {ONE}"
        f" stablehlo.return %i, %w : tensor<i32>, {ONE} }}",
        f'"stablehlo.while"(%n, %one) ({{ ^bb0(%i: tensor<i32>, %v: {ONE}):'
        ' %t = "stablehlo.compare"(%i, %n) <{comparison_direction = #stablehlo<comparison_direction LT>}>'
        ' : (tensor<i32>, tensor<i32>) -> tensor<i1> "stablehlo.return"(%t) : (tensor<i1>) -> () }, {'
        f' ^bb0(%i: tensor<i32>, %v: {ONE}): %w = "func.call"(%v) <{{callee = @g}}> : ({ONE}) -> {ONE}'
        f' "stablehlo.return"(%i, %w) : (tensor<i32>, {ONE}) -> () }}) {{mark}}'
        f" : (tensor<i32>, {ONE}) -> (tensor<i32>, {ONE})",
    ),
    (f"chlo.erf %x : {X} -> {X}", f'"chlo.erf"(%x) : ({X}) -> {X}'),
    (f"chlo.next_after %x, %y : {X}, {X} -> {X}", f'"chlo.next_after"(%x, %y) : ({X}, {X}) -> {X}'),
    (
        f"chlo.top_k(%x, k = 2) : {X} -> (tensor<4x2xf32>, tensor<4x2xi32>)",
        f'"chlo.top_k"(%x) <{{k = 2 : i64}}> : ({X}) -> (tensor<4x2xf32>, tensor<4x2xi32>)',
    ),
    (
        f"chlo.broadcast_compare %x, %one {{comparison_direction = #chlo<comparison_direction LT>}}"
        f" : ({X}, {ONE}) -> tensor<4x6xi1>",
        f'"chlo.broadcast_compare"(%x, %one) <{{comparison_direction = #stablehlo<comparison_direction LT>}}>'
        f" : ({X}, {ONE}) -> tensor<4x6xi1>",
    ),
    ("stablehlo.create_token : !stablehlo.token", '"stablehlo.create_token"() : () -> !stablehlo.token'),
    (
        'stablehlo.constant {a = dense<[0, 1]> : tensor<2xindex>} dense<"0x0000803F00000040"> : tensor<2xf32>',
        "stablehlo.constant {a = dense<[0, 1]> : tensor<2xindex>} dense<[1.0, 2.0]> : tensor<2xf32>",
    ),
]


@pytest.mark.parametrize(("pretty", "generic"), SAME, ids=[pretty.split("(")[0].split(" %")[0] for pretty, _ in SAME])
def test_the_printed_form_is_the_generic_one(pretty: str, generic: str | None) -> None:
    text = text_of(pretty)
    if generic is not None:
        assert text == text_of(generic)
    # Our own text is read too.
    assert str(import_mlir(text)) == text


REFUSED = [
    ("stablehlo.add %x, %y : tensor<4x6xf32>, tensor<4x6xf32>", "expected one type for all"),
    ("stablehlo.add %x, %y, dim = 1 : tensor<4x6xf32>", "'dim' is not one of the values of stablehlo.add"),
    ("stablehlo.add %x, %y", "Expected ':' before the types"),
    ("stablehlo.compare LE %x, %y : (tensor<4x6xf32>) -> tensor<4x6xi1>", "Expected ':' before the types"),
    ("stablehlo.compare WHO, %x, %y : (tensor<4x6xf32>) -> tensor<4x6xi1>", "'WHO' is not a comparison_direction"),
    ("stablehlo.transpose %x, dims = 1 : (tensor<4x6xf32>) -> tensor<6x4xf32>", "'[' expected"),
    ("stablehlo.transpose %x : (tensor<4x6xf32>) -> tensor<6x4xf32>", "needs the property 'permutation'"),
    ("stablehlo.reduce_precision %x, format = m7 : tensor<4x6xf32>", "expected a format, such as e8m7"),
    ("stablehlo.complex %x, %y : tensor<4x6xf32>", "expected one type for all"),
    ("stablehlo.slice %x [0] : (tensor<4x6xf32>) -> tensor<4x6xf32>", "Expected ':' before the end of a slice"),
    (
        "stablehlo.reduce(%x init: %one) applies stablehlo.abs across dimensions = [1]"
        " : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>",
        "'stablehlo.abs' can't be applied",
    ),
    (
        "stablehlo.reduce(%x init: %one) across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>"
        " reducer(%p: tensor<f32>) { stablehlo.return %p : tensor<f32> }",
        "expected two arguments for each operand",
    ),
    ("stablehlo.while(%i = %n) : tensor<f32> cond {} do {}", "%n is used with type tensor<f32>"),
    ("stablehlo.while(%i = %n) cond {} do {}", "expected 1 operand types but had 0"),
    (
        "stablehlo.convolution(%image, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],"
        " window = {pad = [[1], [1]]} : (tensor<1x8x8x2xf32>, tensor<3x3x2x5xf32>) -> tensor<1x8x8x5xf32>",
        "expected two numbers for each dimension",
    ),
    (
        "stablehlo.convolution(%image, %kernel) dim_numbers = [b, 0, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}"
        " : (tensor<1x8x8x2xf32>, tensor<3x3x2x5xf32>) -> tensor<1x8x8x5xf32>",
        "a layout should have",
    ),
    ("stablehlo.add %x, %y {a = #sdy.rule<(} : tensor<4x6xf32>", "'<' has no '>' that closes it"),
    ("stablehlo.scatter %x, %y : tensor<4x6xf32>", "can't have 2 operands"),
    ("stablehlo.unknown %x : tensor<4x6xf32>", "Operation stablehlo.unknown is not registered"),
]


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_wrong_texts_are_refused_with_their_place(body: str, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        module_of(body)
    assert message in str(caught.value)
    if caught.value.diagnostics[0].code == "malformed-mlir":
        assert "^" in str(caught.value)
