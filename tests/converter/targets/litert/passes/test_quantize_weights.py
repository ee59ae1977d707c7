"""The pass `quantize-weights` on text: the weights of each operator."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.pipeline.pass_options import parse_passes
from tfconvert.converter.targets.litert.passes.quantize_weights import QuantizeWeights
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tfl_file
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp


def _weight(name: str, shape: str, value: str = "2.0") -> str:
    kind = f"tensor<{shape}xf32>"
    return f'%{name} = "tfl.pseudo_const"() <{{value = dense<{value}> : {kind}}}> : () -> {kind}'


def _conv(shape: str = "16x4x2x8", value: str = "2.0") -> str:
    channels = shape.partition("x")[0]
    return f"""
    func.func @main(%x: tensor<1x4x4x8xf32>, %b: tensor<{channels}xf32>) -> tensor<1x4x4x{channels}xf32> {{
      {_weight("w", shape, value)}
      %y = "tfl.conv_2d"(%x, %w, %b) <{{padding = "SAME", stride_w = 1 : i32, stride_h = 1 : i32}}>
          : (tensor<1x4x4x8xf32>, tensor<{shape}xf32>, tensor<{channels}xf32>) -> tensor<1x4x4x{channels}xf32>
          loc("model/first/Conv2D")
      func.return %y : tensor<1x4x4x{channels}xf32>
    }}
    """


DEPTHWISE = f"""
    func.func @main(%x: tensor<1x4x4x128xf32>, %b: tensor<128xf32>) -> tensor<1x4x4x128xf32> {{
      {_weight("w", "1x3x3x128")}
      %y = "tfl.depthwise_conv_2d"(%x, %w, %b) <{{padding = "SAME", stride_w = 1 : i32, stride_h = 1 : i32,
          depth_multiplier = 1 : i32}}>
          : (tensor<1x4x4x128xf32>, tensor<1x3x3x128xf32>, tensor<128xf32>) -> tensor<1x4x4x128xf32>
      func.return %y : tensor<1x4x4x128xf32>
    }}
    """


def _product(shape: str = "16x64", value: str = "2.0") -> str:
    height, _, width = shape.partition("x")
    return f"""
    func.func @main(%x: tensor<1x{width}xf32>) -> tensor<1x{height}xf32> {{
      %n = "tfl.no_value"() <{{value}}> : () -> none
      {_weight("w", shape, value)}
      %y = "tfl.fully_connected"(%x, %w, %n)
          : (tensor<1x{width}xf32>, tensor<{shape}xf32>, none) -> tensor<1x{height}xf32>
      func.return %y : tensor<1x{height}xf32>
    }}
    """


def _gather(table: str, indices: str, result: str, axis: int = 0, element: str = "i32") -> str:
    ids = f"tensor<{indices}{'x' * bool(indices)}{element}>"
    return f"""
    func.func @main(%i: {ids}) -> tensor<{result}xf32> {{
      {_weight("w", table)}
      %y = "tfl.gather"(%w, %i) <{{axis = {axis} : i32}}> : (tensor<{table}xf32>, {ids}) -> tensor<{result}xf32>
      func.return %y : tensor<{result}xf32>
    }}
    """


def _counts(options: QuantizeWeights, text: str) -> Counter[str]:
    return options.apply(IRParser(text).parse_module()).counts


def test_convolutions_multiply_integers(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeWeights(),
        _conv("16x4x4x8")
        + """
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.pseudo_qconst"()
    // CHECK-SAME: : tensor<16x4x4x8xi8>
    // CHECK-SAME: -> tensor<16x4x4x8x!quant.uniform<i8:f32:0, {0.015748031
    // CHECK-NOT: dequantize
    // CHECK: "tfl.conv_2d"(%x, [[W]], %b)
    // CHECK-NOT: pseudo_const
    """,
    )


def test_filters_of_few_products_stay_floats(filecheck: FileCheck) -> None:
    small = _conv("64x2x2x4")
    filecheck(
        QuantizeWeights(),
        small
        + """
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.pseudo_const"()
    // CHECK: "tfl.conv_2d"(%x, [[W]], %b)
    // CHECK-NOT: pseudo_qconst
    """,
    )
    filecheck(
        QuantizeWeights(hybrid_only=True),
        small
        + """
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.pseudo_qconst"()
    // CHECK-NOT: dequantize
    // CHECK: "tfl.conv_2d"(%x, [[W]], %b)
    """,
    )


def test_one_scale_is_enough_where_it_has_to_be(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeWeights(per_channel=False),
        _conv()
        + """
    // CHECK: -> tensor<16x4x2x8x!quant.uniform<i8:f32, 0.015748031>>
    """,
    )


def test_filters_of_groups_always_have_scales_of_their_own(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeWeights(per_channel=False),
        _conv("64x6x6x4")
        + """
    // CHECK: -> tensor<64x6x6x4x!quant.uniform<i8:f32:0, {0.015748031,
    """,
    )


@pytest.mark.parametrize("mode", ["dynamic", "weights"])
def test_depthwise_filters_stay_floats_or_become_floats_again(filecheck: FileCheck, mode: str) -> None:
    stays, dequantized = (
        '[[W:%[0-9a-z_]+]] = "tfl.pseudo_const"()',
        """[[Q:%[0-9a-z_]+]] = "tfl.pseudo_qconst"()
    // CHECK-SAME: -> tensor<1x3x3x128x!quant.uniform<i8:f32:3, {
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.dequantize"([[Q]])""",
    )
    filecheck(
        QuantizeWeights(mode),
        DEPTHWISE
        + f"""
    // CHECK: {stays if mode == "dynamic" else dequantized}
    // CHECK: "tfl.depthwise_conv_2d"(%x, [[W]], %b)
    """,
    )


@pytest.mark.parametrize("per_channel", [False, True])
def test_depthwise_filters_may_stay_integers_but_not_with_one_scale(filecheck: FileCheck, per_channel: bool) -> None:
    filecheck(
        QuantizeWeights(hybrid_only=True, per_channel=per_channel),
        DEPTHWISE
        + """
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.pseudo_qconst"()
    // CHECK-SAME: -> tensor<1x3x3x128x!quant.uniform<i8:f32:3, {
    // CHECK-NOT: dequantize
    // CHECK: "tfl.depthwise_conv_2d"(%x, [[W]], %b)
    """,
    )


def test_products_take_asymmetric_inputs(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeWeights(),
        _product("64x64")
        + """
    // CHECK: -> tensor<64x64x!quant.uniform<i8:f32:0, {
    // CHECK: "tfl.fully_connected"
    // CHECK-SAME: asymmetric_quantize_inputs = true
    """,
    )


def test_products_and_tables_gain_by_four_bits(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeWeights(weights=4),
        _product()
        + """
    // CHECK: dense<7> : tensor<16x64xi4>
    // CHECK-SAME: -> tensor<16x64x!quant.uniform<i4:f32:0, {0.2857143,
    """,
    )
    filecheck(QuantizeWeights(weights=4), _conv() + "// CHECK: !quant.uniform<i8:f32:0, {")
    filecheck(
        QuantizeWeights(weights=4),
        _gather("100x16", "2x?", "2x?x16")
        + """
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.pseudo_qconst"()
    // CHECK-SAME: -> tensor<100x16x!quant.uniform<i4:f32:0, {
    // CHECK: [[I:%[0-9a-z_]+]] = "tfl.reshape"(%i, {{.*}} -> tensor<?xi32>
    // CHECK-NEXT: [[Y:%[0-9a-z_]+]] = "tfl.embedding_lookup"([[I]], [[W]]) : {{.*}} -> tensor<?x16xf32>
    // CHECK: "tfl.reshape"([[Y]], {{.*}}new_shape = [2 : i32, -1 : i32, 16 : i32]{{.*}} -> tensor<2x?x16xf32>
    """,
    )


def test_vectors_of_indices_look_up_rows(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeWeights(),
        _gather("100x16", "?", "?x16")
        + """
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.pseudo_qconst"()
    // CHECK-SAME: -> tensor<100x16x!quant.uniform<i8:f32, 0.015748031>>
    // CHECK-NEXT: "tfl.embedding_lookup"(%i, [[W]]) : {{.*}} -> tensor<?x16xf32>
    """,
    )


@pytest.mark.parametrize(
    ("table", "indices", "result", "axis", "element"),
    [
        ("100x16", "2x3", "2x3x16", 0, "i32"),
        ("100x16", "3", "3x16", 0, "i64"),
        ("100x16", "", "16", 0, "i32"),
        ("100x16", "3", "100x3", 1, "i32"),
        ("100x4x4", "3", "3x4x4", 0, "i32"),
    ],
)
def test_other_indices_take_integers_that_become_floats(
    filecheck: FileCheck, table: str, indices: str, result: str, axis: int, element: str
) -> None:
    filecheck(
        QuantizeWeights(),
        _gather(table, indices, result, axis, element)
        + f"""
    // CHECK: [[Y:%[0-9a-z_]+]] = "tfl.gather"({{{{.*}}}} -> tensor<{result}x!quant.uniform<i8:f32, 0.015748031>>
    // CHECK-NEXT: "tfl.dequantize"([[Y]]) : {{{{.*}}}} -> tensor<{result}xf32>
    """,
    )


@pytest.mark.parametrize("element", ["i32", "i64"])
def test_a_table_that_is_multiplied_by_too_is_stored_once(filecheck: FileCheck, element: str) -> None:
    text = f"""
    func.func @main(%i: tensor<2x3x{element}>) -> tensor<2x3x100xf32> {{
      {_weight("w", "100x32")}
      %n = "tfl.no_value"() <{{value}}> : () -> none
      %x = "tfl.gather"(%w, %i) <{{axis = 0 : i32}}> : (tensor<100x32xf32>, tensor<2x3x{element}>) -> tensor<2x3x32xf32>
      %y = "tfl.fully_connected"(%x, %w, %n) <{{keep_num_dims = true}}>
          : (tensor<2x3x32xf32>, tensor<100x32xf32>, none) -> tensor<2x3x100xf32>
      func.return %y : tensor<2x3x100xf32>
    }}
    """
    filecheck(
        QuantizeWeights(),
        text
        + """
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.pseudo_qconst"()
    // CHECK-NOT: "tfl.pseudo_qconst"()
    // CHECK: "tfl.embedding_lookup"({{.*}}, [[W]])
    // CHECK: "tfl.fully_connected"({{.*}}, [[W]],
    """,
    )


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (_conv("15x4x2x8"), _conv("16x4x2x8")),
        (_product("31x33"), _product("32x32")),
        (_gather("51x20", "3", "3x20"), _gather("52x20", "3", "3x20")),
    ],
)
@pytest.mark.parametrize("mode", ["dynamic", "weights"])
def test_weights_of_few_elements_stay_floats(mode: str, small: str, large: str) -> None:
    assert not _counts(QuantizeWeights(mode), small)
    assert _counts(QuantizeWeights(mode), large).total() == 1


RECURRENT = """
    func.func @main(%x: tensor<1x3xFEATURESxf32>, %b: tensor<32xf32>, %h: tensor<1x32xf32>) -> tensor<1x3x32xf32> {
      WEIGHT
      RECURRENT
      %y = "tfl.unidirectional_sequence_rnn"(%x, %w, %r, %b, %h) <{fused_activation_function = "TANH"}>
          : (tensor<1x3xFEATURESxf32>, tensor<32xFEATURESxf32>, tensor<32x32xf32>, tensor<32xf32>, tensor<1x32xf32>)
          -> tensor<1x3x32xf32>
      func.return %y : tensor<1x3x32xf32>
    }
    """


def _recurrent(features: int, value: str = "2.0") -> str:
    text = RECURRENT.replace("FEATURES", str(features)).replace("WEIGHT", _weight("w", f"32x{features}", value))
    return text.replace("RECURRENT", _weight("r", "32x32"))


def test_recurrent_operators_take_all_or_none_as_integers(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeWeights(),
        _recurrent(32)
        + """
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.pseudo_qconst"()
    // CHECK-SAME: -> tensor<32x32x!quant.uniform<i8:f32, 0.015748031>>
    // CHECK: [[R:%[0-9a-z_]+]] = "tfl.pseudo_qconst"()
    // CHECK-SAME: -> tensor<32x32x!quant.uniform<i8:f32, 0.015748031>>
    // CHECK: "tfl.unidirectional_sequence_rnn"(%x, [[W]], [[R]], %b, %h)
    // CHECK-SAME: asymmetric_quantize_inputs = true
    """,
    )
    assert not _counts(QuantizeWeights(), _recurrent(8))
    assert not QuantizeWeights().apply(module := IRParser(_recurrent(32, "0x7F800000")).parse_module()).counts
    assert "pseudo_qconst" not in str(module)
    assert _counts(QuantizeWeights("weights"), _recurrent(8)) == {"int8 per channel, dequantized": 1}


def test_in_the_mode_weights_all_operators_get_floats(filecheck: FileCheck) -> None:
    for text in (_conv(), DEPTHWISE, _product()):
        module = filecheck(QuantizeWeights("weights"), text + "// CHECK: dequantize")
        names = [op.name for op in module.walk()]
        assert names.count("tfl.pseudo_qconst") == names.count("tfl.dequantize") == 1
        assert "tfl.pseudo_const" not in names
        assert "asymmetric_quantize_inputs" not in str(module)


def test_constants_become_halves(filecheck: FileCheck) -> None:
    module = filecheck(
        QuantizeWeights("float16"),
        _product()
        + """
    // CHECK: [[H:%[0-9a-z_]+]] = "tfl.pseudo_const"() <{value = {{.*}} : tensor<16x64xf16>}>
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.dequantize"([[H]]) : (tensor<16x64xf16>) -> tensor<16x64xf32>
    // CHECK: "tfl.fully_connected"(%x, [[W]]
    """,
    )
    assert str(module.attributes[tfl_file.REDUCED_PRECISION]) == '"fp16accfp32"'


def _sum(shape: str, value: str = "2.0") -> str:
    return f"""
    func.func @main(%x: tensor<{shape}xf32>) -> (tensor<{shape}xf32>, tensor<{shape}xf32>) {{
      {_weight("w", shape, value)}
      %y = "tfl.add"(%x, %w) : (tensor<{shape}xf32>, tensor<{shape}xf32>) -> tensor<{shape}xf32>
      %z = "tfl.mul"(%y, %w) : (tensor<{shape}xf32>, tensor<{shape}xf32>) -> tensor<{shape}xf32>
      func.return %y, %z : tensor<{shape}xf32>, tensor<{shape}xf32>
    }}
    """


def test_uses_share_what_is_turned_to_floats(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeWeights("float16"),
        _sum("128")
        + """
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.dequantize"
    // CHECK-NEXT: "tfl.add"(%x, [[W]])
    // CHECK-NEXT: "tfl.mul"({{.*}}, [[W]])
    """,
    )


def test_small_constants_stay_32_bit_floats() -> None:
    assert not _counts(QuantizeWeights("float16"), _sum("63"))
    module = IRParser(_sum("63")).parse_module()
    QuantizeWeights("float16").apply(module)
    assert tfl_file.REDUCED_PRECISION not in module.attributes


def test_halves_end_where_they_end(filecheck: FileCheck) -> None:
    (note,) = QuantizeWeights("float16").apply(IRParser(_sum("128", "-1.0e9")).parse_module()).notes
    assert (note.severity, note.op) == ("warning", "tfl.add")
    assert "1e+09" in note.message
    filecheck(QuantizeWeights("float16"), _sum("128", "-1.0e9") + "// CHECK: dense<-6.550400e+04> : tensor<128xf16>")


@pytest.mark.parametrize("value", ["0x7F800000", "0x7FC00000"])
@pytest.mark.parametrize("mode", ["dynamic", "weights", "float16"])
def test_what_is_no_number_stays(value: str, mode: str) -> None:
    module = IRParser(_conv(value=value)).parse_module()
    before = str(module)
    note, whole = QuantizeWeights(mode).apply(module).notes
    assert (note.severity, note.op, note.node) == ("note", "tfl.conv_2d", "model/first/Conv2D")
    assert whole.code == "nothing-quantized"
    assert str(module) == before


LOOP = f"""
    func.func @main(%x: tensor<1x64xf32>) -> tensor<1x64xf32> {{
      %0 = "tfl.while"(%x) <{{cond = @cond, body = @body}}> : (tensor<1x64xf32>) -> tensor<1x64xf32>
      func.return %0 : tensor<1x64xf32>
    }}
    func.func private @cond(%x: tensor<1x64xf32>) -> tensor<i1> {{
      %0 = "tfl.pseudo_const"() <{{value = dense<true> : tensor<i1>}}> : () -> tensor<i1>
      func.return %0 : tensor<i1>
    }}
    func.func private @body(%x: tensor<1x64xf32>) -> tensor<1x64xf32> {{
      %n = "tfl.no_value"() <{{value}}> : () -> none
      {_weight("w", "64x64")}
      %0 = "tfl.fully_connected"(%x, %w, %n) : (tensor<1x64xf32>, tensor<64x64xf32>, none) -> tensor<1x64xf32>
      %1 = "tfl.fully_connected"(%0, %w, %n) : (tensor<1x64xf32>, tensor<64x64xf32>, none) -> tensor<1x64xf32>
      func.return %1 : tensor<1x64xf32>
    }}
"""


def test_bodies_of_loops_are_quantized_too_and_a_weight_used_twice_once(filecheck: FileCheck) -> None:
    module = filecheck(
        QuantizeWeights(),
        LOOP
        + """
    // CHECK: @body
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.pseudo_qconst"()
    // CHECK: "tfl.fully_connected"(%x, [[W]],
    // CHECK: "tfl.fully_connected"({{.*}}, [[W]],
    """,
    )
    assert "tfl.pseudo_qconst" in str(module)
    assert _counts(QuantizeWeights(), LOOP) == {"int8 per channel": 1}


def test_who_else_uses_a_weight_keeps_the_floats(filecheck: FileCheck) -> None:
    text = (
        _product()
        .replace(
            "func.return %y : tensor<1x16xf32>",
            """
      %s = "tfl.mul"(%w, %w) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
      func.return %y, %s : tensor<1x16xf32>, tensor<16x64xf32>
    """,
        )
        .replace("-> tensor<1x16xf32> {", "-> (tensor<1x16xf32>, tensor<16x64xf32>) {")
    )
    filecheck(
        QuantizeWeights(),
        text
        + """
    // CHECK: [[W:%[0-9a-z_]+]] = "tfl.pseudo_const"()
    // CHECK: "tfl.mul"([[W]], [[W]])
    """,
    )


@pytest.mark.parametrize("pattern", ["CONV_2D", "*/Conv2D", "model/first/*", "CONV_*"])
@pytest.mark.parametrize("mode", ["dynamic", "weights", "float16"])
def test_excluded_operators_keep_floats(mode: str, pattern: str) -> None:
    module = IRParser(_conv()).parse_module()
    before = str(module)
    assert [note.code for note in QuantizeWeights(mode, exclude=(pattern,)).apply(module).notes] == [
        "nothing-quantized"
    ]
    assert str(module) == before


def test_a_pattern_that_names_nothing_is_noted() -> None:
    module = IRParser(_conv()).parse_module()
    result = QuantizeWeights(exclude=("SOFTMAX", "CONV_2D", "*/nothing")).apply(module)
    assert [note.code for note in result.notes] == ["nothing-excluded", "nothing-excluded", "nothing-quantized"]
    assert "'SOFTMAX'" in result.notes[0].message
    assert not result.counts


def test_the_modes_of_integers_are_not_its_business() -> None:
    for mode in ("int8", "int16"):
        assert not _counts(QuantizeWeights(mode), _conv())


def test_options_can_be_written() -> None:
    (run,) = parse_passes('quantize-weights{mode=weights weights=4 per-channel=false exclude="*/a",SOFTMAX}')
    assert run == QuantizeWeights("weights", 4, False, ("*/a", "SOFTMAX"))


@pytest.mark.parametrize(
    "options", [QuantizeWeights("int7"), QuantizeWeights(weights=5), QuantizeWeights("float16", weights=4)]
)
def test_wrong_options_are_refused(options: QuantizeWeights) -> None:
    with pytest.raises(ConversionError) as caught:
        options.apply(ModuleOp.of([]))
    assert caught.value.code == "wrong-option"
