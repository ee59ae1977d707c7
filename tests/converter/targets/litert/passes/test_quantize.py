"""The pass `quantize`: ranges are attributes of ops and functions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.converter.pass_texts import FileCheck
from tests.support.run_text import parse
from tfconvert.converter.targets.litert.passes.quantize import QuantizeOps
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.quantization import Mode, Quantize

INT8, INT16 = QuantizeOps(Quantize("int8")), QuantizeOps(Quantize("int16"))
STRICT = QuantizeOps(Quantize("int8", strict=True))

X = "tensor<1x4xf32>"
ARG = "attributes {tfl.ranges = array<f32: -1.0, 1.0>}"
SEEN = "{tfl.ranges = array<f32: -2.0, 2.0>}"
"""The range that results have in most of these texts."""

I8X = "tensor<1x4x!quant.uniform<i8:f32, 0.007843138:-1>>"
"""The argument, quantized."""


def _main(body: str, result: str = "%0", attributes: str = ARG, others: str = "") -> str:
    return f"""
    func.func @main(%x: {X}) -> {X} {attributes} {{
      {body}
      func.return {result} : {X}
    }}
    {others}
    """


def _product(
    bias: str = "%b",
    weight: str = "[[1.27, 0.0, 0.0, 0.0], [0.0, -0.127, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [2.54, 0.0, 0.0, 0.0]]",
    values: str = "[1.0, 2.0, 3.0, 4.0]",
) -> str:
    return _main(f"""
      %w = "tfl.pseudo_const"() <{{value = dense<{weight}> : tensor<4x4xf32>}}> : () -> tensor<4x4xf32>
      %b = "tfl.pseudo_const"() <{{value = dense<{values}> : tensor<4xf32>}}> : () -> tensor<4xf32>
      %n = "tfl.no_value"() <{{value}}> : () -> none
      %0 = "tfl.fully_connected"(%x, %w, {bias}) {SEEN}
          : ({X}, tensor<4x4xf32>, {"none" if bias == "%n" else "tensor<4xf32>"}) -> {X}
    """)


def test_weights_have_a_scale_for_each_channel(filecheck: FileCheck) -> None:
    # A channel of zeros has the largest scale; biases have the scales of the products.
    filecheck(
        INT8,
        _product()
        + """
    // CHECK: [[X:%[0-9]+]] = "tfl.quantize"
    // CHECK: [[W:%[0-9]+]] = "tfl.pseudo_qconst"()
    // CHECK-SAME{LITERAL}: dense<[[127, 0, 0, 0], [0, -127, 0, 0], [0, 0, 0, 0], [127, 0, 0, 0]]> : tensor<4x4xi8>
    // CHECK-SAME: !quant.uniform<i8:f32:0, {0.01,0.001,0.02,0.02}>
    // CHECK: [[B:%[0-9]+]] = "tfl.pseudo_qconst"()
    // CHECK-SAME: dense<[12750, 255000, 19125, 25500]> : tensor<4xi32>
    // CHECK-SAME: i32:f32:0, {7.8431374e-05,7.8431385e-06,0.00015686275,0.00015686275}
    // CHECK: "tfl.fully_connected"([[X]], [[W]], [[B]])
    // CHECK-SAME: -> tensor<1x4x!quant.uniform<i8:f32, 0.015686275:-1>>
    """,
    )


def test_weights_have_one_scale(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeOps(Quantize("int8", per_channel=False)),
        _product()
        + """
    // CHECK-DAG{LITERAL}: dense<[[64, 0, 0, 0], [0, -6, 0, 0], [0, 0, 0, 0], [127, 0, 0, 0]]> : tensor<4x4xi8>
    // CHECK-DAG: tensor<4x4x!quant.uniform<i8:f32, 0.02>>
    // CHECK-DAG: tensor<4x!quant.uniform<i32:f32, 0.00015686275>>
    """,
    )


def test_products_with_16_bits_have_biases_of_64(filecheck: FileCheck) -> None:
    filecheck(
        INT16,
        _product()
        + """
    // CHECK: "tfl.quantize"(%{{.*}}) : (tensor<1x4xf32>) -> tensor<1x4x!quant.uniform<i16:f32, 6.1035156e-05>>
    // CHECK: tensor<4x4xi8>
    // CHECK: tensor<4xi64>
    // CHECK: "tfl.fully_connected"
    // CHECK-SAME: -> tensor<1x4x!quant.uniform<i16:f32, 0.00012207031>>
    """.replace("tensor<4xi64>", "dense<{{.*}}> : tensor<4xi64>"),
    )


def test_a_product_without_a_bias_stays_so(filecheck: FileCheck) -> None:
    filecheck(
        INT8,
        _product("%n")
        + """
    // CHECK: [[N:%[0-9a-z]+]] = "tfl.no_value"
    // CHECK: "tfl.fully_connected"(%{{[0-9]+}}, %{{[0-9]+}}, [[N]])
    """,
    )


@pytest.mark.parametrize("bias", ["", ", %n"])
def test_a_convolution_without_a_bias_gets_one(filecheck: FileCheck, bias: str) -> None:
    image = "tensor<1x2x2x1xf32>"
    filecheck(
        INT8,
        f"""
    func.func @main(%x: {image}) -> {image} {ARG} {{
      %w = "tfl.pseudo_const"() <{{value = dense<1.0> : tensor<1x1x1x1xf32>}}> : () -> tensor<1x1x1x1xf32>
      %n = "tfl.no_value"() <{{value}}> : () -> none
      %0 = "tfl.conv_2d"(%x, %w{bias}) <{{padding = "SAME", stride_h = 1 : i32, stride_w = 1 : i32}}> {SEEN}
          : ({image}, tensor<1x1x1x1xf32>{", none" if bias else ""}) -> {image}
      func.return %0 : {image}
    }}
    // CHECK: [[B:%[0-9]+]] = "tfl.pseudo_qconst"() <{{{{.*}}}}> : () -> tensor<1x!quant.uniform<i32:f32
    // CHECK: "tfl.conv_2d"(%{{{{[0-9]+}}}}, %{{{{[0-9]+}}}}, [[B]])
    """,
    )


def test_large_biases_make_weights_coarser(filecheck: FileCheck) -> None:
    filecheck(
        INT8,
        _product(values="[1.0e6, 2.0, 3.0, 4.0]").replace(SEEN, "{tfl.ranges = array<f32: -1.0, 1.0e6>}")
        + """
    // CHECK: !quant.uniform<i8:f32:0, {0.11874
    // CHECK: dense<[1073741{{[0-9]+}}, 255000, 19125, 25500]> : tensor<4xi32>
    """,
    )


def test_biases_beyond_the_range_of_results_are_moved(filecheck: FileCheck) -> None:
    """The first integer is the same for all of them, also if the bias is a mask; XNNPACK takes no scales as large."""
    filecheck(
        INT8,
        _product(values="[-1.0e20, 2.0, 3.0, 4.0]")
        + """
    // CHECK: !quant.uniform<i8:f32:0, {0.01,0.001,0.02,0.02}>
    // CHECK: dense<[-41656, 255000, 12800, 25500]> : tensor<4xi32>
    """,
    )


@pytest.mark.parametrize("wrong", ["weight", "bias"])
@pytest.mark.parametrize("number", ["0x7FC00000", "0x7F800000"])
def test_weights_must_be_finite(wrong: str, number: str) -> None:
    row = f"[{number}, 0.0, 0.0, 0.0]"
    rows = ", ".join([row, *["[0.0, 0.0, 0.0, 1.0]"] * 3])
    text = _product(weight=f"[{rows}]") if wrong == "weight" else _product(values=row)
    with pytest.raises(ConversionError, match=f"its {wrong} has elements that are not finite") as caught:
        INT8.apply(parse(text))
    assert caught.value.code == "non-finite-weight"


@pytest.mark.parametrize("operand", ["weight", "bias"])
def test_products_of_what_is_computed_stay_floats(filecheck: FileCheck, operand: str) -> None:
    weight, bias = ("%c", "%b") if operand == "weight" else ("%w", "%d")
    body = f"""
      %w = "tfl.pseudo_const"() <{{value = dense<1.0> : tensor<4x4xf32>}}> : () -> tensor<4x4xf32>
      %b = "tfl.pseudo_const"() <{{value = dense<1.0> : tensor<4xf32>}}> : () -> tensor<4xf32>
      %c = "tfl.sin"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %d = "tfl.sin"(%b) : (tensor<4xf32>) -> tensor<4xf32>
      %0 = "tfl.fully_connected"(%x, {weight}, {bias}) {SEEN} : ({X}, tensor<4x4xf32>, tensor<4xf32>) -> {X}
    """
    filecheck(INT8, _main(body) + f"// CHECK: -> {X}\n// CHECK-NOT: quant.uniform")
    with pytest.raises(ConversionError, match=f"its {operand} is computed"):
        STRICT.apply(parse(_main(body)))


def test_16_bit_sums_need_no_powers_of_two(filecheck: FileCheck) -> None:
    filecheck(
        INT16,
        _main(f'%0 = "tfl.add"(%x, %x) {SEEN} : ({X}, {X}) -> {X}')
        + """
    // CHECK: "tfl.add"
    // CHECK-SAME: pot_scale_int16 = false
    """,
    )


CONCAT = f"""
      %1 = "tfl.relu"(%x) {{tfl.ranges = array<f32: 0.0, 1.0>}} : ({X}) -> {X}
      %2 = "tfl.abs"(%x) {{tfl.ranges = array<f32: 0.0, 3.0>}} : ({X}) -> {X}
      %3 = "tfl.concatenation"(%1, %2) <{{axis = 0 : i32}}> {{tfl.ranges = array<f32: 0.0, 3.0>}}
          : ({X}, {X}) -> tensor<2x4xf32>
      %4, %5 = "tfl.unpack"(%3) <{{num = 2 : i32, axis = 0 : i32}}>
          {{tfl.ranges = array<f32: 0.0, 1.0, 0.0, 3.0>}} : (tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      %6 = "tfl.pack"(%4, %5) <{{values_count = 2 : i32, axis = 0 : i32}}> {{tfl.ranges = array<f32: 0.0, 3.0>}}
          : (tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
      %7 = "tfl.pseudo_const"() <{{value = dense<1> : tensor<1xi32>}}> : () -> tensor<1xi32>
      %0 = "tfl.gather"(%6, %7) <{{axis = 0 : i32}}> {{tfl.ranges = array<f32: 0.0, 3.0>}}
          : (tensor<2x4xf32>, tensor<1xi32>) -> {X}
"""


def test_ops_that_move_numbers_share_a_scale(filecheck: FileCheck) -> None:
    filecheck(
        INT8,
        _main(CONCAT)
        + """
    // CHECK: "tfl.relu"
    // CHECK-SAME: -> tensor<1x4x!quant.uniform<i8:f32, 0.011764706:-128>>
    // CHECK: "tfl.abs"
    // CHECK-SAME: -> tensor<1x4x!quant.uniform<i8:f32, 0.011764706:-128>>
    // CHECK-NEXT: "tfl.concatenation"
    // CHECK-SAME: -> tensor<2x4x!quant.uniform<i8:f32, 0.011764706:-128>>
    // CHECK-NEXT: "tfl.unpack"
    // CHECK-SAME: (tensor<4x!quant.uniform<i8:f32, 0.011764706:-128>>, tensor<4x!quant.uniform<i8:f32, 0.011764706:-12
    // CHECK-NEXT: "tfl.pack"
    // CHECK: "tfl.gather"
    // CHECK-SAME: -> tensor<1x4x!quant.uniform<i8:f32, 0.011764706:-128>>
    // CHECK-NEXT: "tfl.dequantize"
    // CHECK-NOT: "tfl.quantize"
    """,
    )


def test_constants_that_only_bound_leave_the_scale(filecheck: FileCheck) -> None:
    filecheck(
        INT8,
        _main(f"""
      %c = "tfl.pseudo_const"() <{{value = dense<5.1> : tensor<f32>}}> : () -> tensor<f32>
      %1 = "tfl.relu"(%x) {{tfl.ranges = array<f32: 0.0, 1.0>}} : ({X}) -> {X}
      %0 = "tfl.minimum"(%1, %c) {{tfl.ranges = array<f32: 0.0, 1.0>}} : ({X}, tensor<f32>) -> {X}
    """)
        + """
    // CHECK: <{value = dense<127> : tensor<i8>, qtype = tensor<!quant.uniform<i8:f32, 0.003921569:-128>>}>
    // CHECK: "tfl.relu"{{.*}} -> tensor<1x4x!quant.uniform<i8:f32, 0.003921569:-128>>
    // CHECK: "tfl.minimum"{{.*}} -> tensor<1x4x!quant.uniform<i8:f32, 0.003921569:-128>>
    """,
    )


def test_a_fixed_scale_goes_through_what_moves_numbers(filecheck: FileCheck) -> None:
    filecheck(
        INT8,
        _main(f"""
      %1 = "tfl.softmax"(%x) : ({X}) -> {X}
      %s = "tfl.pseudo_const"() <{{value = dense<[1, 4]> : tensor<2xi32>}}> : () -> tensor<2xi32>
      %2 = "tfl.reshape"(%1, %s) {{tfl.ranges = array<f32: 0.0, 0.5>}} : ({X}, tensor<2xi32>) -> {X}
      %0 = "tfl.relu"(%2) {{tfl.ranges = array<f32: 0.0, 0.5>}} : ({X}) -> {X}
    """)
        + """
    // CHECK: "tfl.softmax"{{.*}} -> tensor<1x4x!quant.uniform<i8:f32, 0.00390625:-128>>
    // CHECK: "tfl.reshape"{{.*}} -> tensor<1x4x!quant.uniform<i8:f32, 0.00390625:-128>>
    """,
    )


@pytest.mark.parametrize(
    ("settings", "is_float"),
    [
        ({}, True),
        ({"io": ("uint8", "float32")}, True),
        ({"io": ("float32", "int8")}, False),
        ({"io": "int8"}, False),
        ({"io": ("uint8", "float32"), "strict": True}, False),
    ],
)
def test_probabilities_stay_floats_if_they_are_float_outputs(
    settings: dict[str, Any], is_float: bool, filecheck: FileCheck
) -> None:
    result = X if is_float else "tensor<1x4x!quant.uniform<i8:f32, 0.00390625:-128>>"
    filecheck(
        QuantizeOps(Quantize("int8", **settings)),
        _main(f"""
      %1 = "tfl.relu"(%x) {SEEN} : ({X}) -> {X}
      %0 = "tfl.softmax"(%1) : ({X}) -> {X}
    """)
        + f"""
    // CHECK: "tfl.softmax"{{{{.*}}}} -> {result}
    """,
    )


def test_scales_that_conflict_are_converted(filecheck: FileCheck) -> None:
    # The softmax has a scale of its own; what it is joined with has another.
    filecheck(
        INT8,
        f"""
    func.func @main(%x: {X}) -> tensor<2x4xf32> {ARG} {{
      %1 = "tfl.softmax"(%x) : ({X}) -> {X}
      %0 = "tfl.concatenation"(%1, %x) <{{axis = 0 : i32}}> {{tfl.ranges = array<f32: -1.0, 1.0>}}
          : ({X}, {X}) -> tensor<2x4xf32>
      func.return %0 : tensor<2x4xf32>
    }}
    // CHECK: [[X:%[0-9]+]] = "tfl.quantize"(%{{{{[a-z0-9]+}}}})
    // CHECK-NEXT: [[S:%[0-9]+]] = "tfl.softmax"([[X]]){{{{.*}}}} -> tensor<1x4x!quant.uniform<i8:f32, 0.00390625:-128>>
    // CHECK-NEXT: [[T:%[0-9]+]] = "tfl.quantize"([[S]]){{{{.*}}}} -> {I8X}
    // CHECK-NEXT: "tfl.concatenation"([[T]], [[X]])
    // CHECK-NEXT: "tfl.dequantize"
    """,
    )


def test_other_constants_have_their_own_scale(filecheck: FileCheck) -> None:
    filecheck(
        INT8,
        _main(f"""
      %c = "tfl.pseudo_const"() <{{value = dense<[0.0, 2.55, 1.0, 0.5]> : tensor<4xf32>}}> : () -> tensor<4xf32>
      %0 = "tfl.mul"(%x, %c) {SEEN} : ({X}, tensor<4xf32>) -> {X}
    """)
        + """
    // CHECK: dense<[-128, 127, -28, -78]> : tensor<4xi8>, qtype = tensor<4x!quant.uniform<i8:f32, 0.01:-128>>
    """,
    )


ISLAND = f"""
      %1 = "tfl.relu"(%x) {SEEN} : ({X}) -> {X}
      %2 = "tfl.sin"(%1) : ({X}) -> {X}
      %3 = "tfl.cos"(%1) : ({X}) -> {X}
      %0 = "tfl.add"(%2, %3) {SEEN} : ({X}, {X}) -> {X}
"""


def test_what_has_no_kernel_is_an_island(filecheck: FileCheck) -> None:
    # Only what is between integers is converted, and once.
    text = ISLAND.replace('%2 = "tfl.sin"(%1)', f'%2 = "tfl.sin"(%1) {SEEN}').replace(
        '%3 = "tfl.cos"(%1)', f'%3 = "tfl.cos"(%1) {SEEN}'
    )
    filecheck(
        INT8,
        _main(text)
        + """
    // CHECK: "tfl.quantize"
    // CHECK-NEXT: "tfl.relu"
    // CHECK-NEXT: [[F:%[0-9]+]] = "tfl.dequantize"
    // CHECK-NEXT: "tfl.sin"([[F]])
    // CHECK-NEXT: "tfl.quantize"
    // CHECK-NEXT: "tfl.cos"([[F]])
    // CHECK-NEXT: "tfl.quantize"
    // CHECK-NEXT: "tfl.add"
    // CHECK-NEXT: "tfl.dequantize"
    """,
    )


def test_what_was_not_seen_stays_float(filecheck: FileCheck) -> None:
    filecheck(
        INT8,
        _main(ISLAND)
        + """
    // CHECK: "tfl.relu"
    // CHECK: "tfl.sin"
    // CHECK: "tfl.add"(%{{[0-9]+}}, %{{[0-9]+}}) {{.*}} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    """,
    )


MOVES = f"""
      %p = "tfl.pseudo_const"() <{{value = dense<[0, 1]> : tensor<2xi32>}}> : () -> tensor<2xi32>
      %1 = "tfl.transpose"(%x, %p) {{tfl.ranges = array<f32: -1.0, 1.0>}} : ({X}, tensor<2xi32>) -> {X}
      %0 = "tfl.reverse_v2"(%1, %p) {{tfl.ranges = array<f32: -1.0, 1.0>}} : ({X}, tensor<2xi32>) -> {X}
"""


def test_floats_that_are_only_moved_stay_floats(filecheck: FileCheck) -> None:
    filecheck(INT8, _main(MOVES) + "// CHECK: func.func\n// CHECK-NOT: quant.uniform")


def test_integers_are_moved_as_integers(filecheck: FileCheck) -> None:
    body = MOVES + f'%2 = "tfl.relu"(%0) {{tfl.ranges = array<f32: 0.0, 1.0>}} : ({X}) -> {X}'
    filecheck(
        INT8,
        _main(body, "%2")
        + """
    // CHECK: "tfl.quantize"
    // CHECK: "tfl.transpose"{{.*}} -> [[RECTIFIED:tensor<1x4x!quant.uniform<i8:f32, 0.003921569:-128>>]]
    // CHECK-NEXT: "tfl.reverse_v2"{{.*}} -> [[RECTIFIED]]
    // CHECK-NEXT: "tfl.relu"
    """,
    )


@pytest.mark.parametrize("wanted", [Quantize("int8", strict=True), Quantize("int8", io="int8")])
def test_everything_is_integers_if_that_is_wanted(filecheck: FileCheck, wanted: Quantize) -> None:
    filecheck(
        QuantizeOps(wanted),
        _main(MOVES)
        + f"""
    // CHECK: "tfl.transpose"{{{{.*}}}} -> {I8X}
    // CHECK-NEXT: "tfl.reverse_v2"{{{{.*}}}} -> {I8X}
    """,
    )


HEAD = f'%1 = "tfl.relu"(%x) {SEEN} : ({X}) -> {X}\n      %0 = "tfl.softmax"(%1) : ({X}) -> {X}'


@pytest.mark.parametrize("quantize", [INT8, QuantizeOps(Quantize("int8", strict=True)), INT16])
def test_heads_stay_floats_unless_integers_are_wanted(filecheck: FileCheck, quantize: QuantizeOps) -> None:
    kept = "(%{{[0-9]+}}) : (tensor<1x4xf32>)" if quantize is INT8 else "(%{{[0-9]+}}) : (tensor<1x4x!quant"
    filecheck(quantize, _main(HEAD) + f'// CHECK: "tfl.softmax"{kept}')


def test_what_is_excluded_stays_float(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeOps(Quantize("int8", exclude=["REL*"], strict=True)),
        _main(CONCAT)
        + """
    // CHECK: "tfl.relu"{{.*}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    // CHECK: "tfl.abs"{{.*}} : (tensor<1x4x!quant
    """,
    )


@pytest.mark.parametrize(("mode", "noted"), [("int8", ["'SOFTMAX'"]), ("dynamic", [])])
def test_a_pattern_that_names_nothing_is_noted(mode: Mode, noted: list[str]) -> None:
    # In the mode `dynamic`, `quantize-weights` notes it.
    result = QuantizeOps(Quantize(mode, exclude=["REL*", "SOFTMAX"])).apply(parse(_main(CONCAT)))
    notes = [note for note in result.notes if note.code == "nothing-excluded"]
    assert len(notes) == len(noted)
    assert all(name in note.message for note, name in zip(notes, noted, strict=True))


def test_all_that_would_stay_float_is_listed() -> None:
    with pytest.raises(ConversionError) as caught:
        STRICT.apply(parse(_main(ISLAND)))
    messages = [each.message for each in caught.value.diagnostics]
    assert {each.code for each in caught.value.diagnostics} == {"stays-float"}
    assert len(messages) == 3
    assert sum("floats only" in message for message in messages) == 2
    assert sum("ranges of its operands or results are unknown" in message for message in messages) == 1


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_a_range_that_is_not_finite_is_unknown(filecheck: FileCheck, number: str) -> None:
    bits = {"nan": "0x7FC00000", "inf": "0x7F800000"}[number]
    body = f'%0 = "tfl.relu"(%x) {{tfl.ranges = array<f32: 0.0, {bits}>}} : ({X}) -> {X}'
    filecheck(INT8, _main(body) + '// CHECK: "tfl.relu"{{.*}} -> tensor<1x4xf32>')


def test_constants_that_are_not_finite_keep_an_op_float(filecheck: FileCheck) -> None:
    filecheck(
        INT8,
        _main(f"""
      %c = "tfl.pseudo_const"() <{{value = dense<0x7FC00000> : tensor<f32>}}> : () -> tensor<f32>
      %0 = "tfl.add"(%x, %c) {SEEN} : ({X}, tensor<f32>) -> {X}
    """)
        + '// CHECK: "tfl.add"{{.*}} -> tensor<1x4xf32>',
    )


LOOP = """
    func.func @main(%x: tensor<1x4xf32>, %p: tensor<i1>) -> tensor<1x4xf32> {
      %0 = "tfl.while"(%x) <{cond = @cond, body = @body}> : (tensor<1x4xf32>) -> tensor<1x4xf32>
      func.return %0 : tensor<1x4xf32>
    }
    func.func private @cond(%x: tensor<1x4xf32>) -> tensor<i1> {
      %0 = "tfl.pseudo_const"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      func.return %0 : tensor<i1>
    }
    func.func private @body(%x: tensor<1x4xf32>) -> tensor<1x4xf32> attributes {tfl.ranges = array<f32: -1.0, 1.0>} {
      %w = "tfl.pseudo_const"() <{value = dense<1.0> : tensor<4x4xf32>}> : () -> tensor<4x4xf32>
      %n = "tfl.no_value"() <{value}> : () -> none
      %0 = "tfl.fully_connected"(%x, %w, %n) {tfl.ranges = array<f32: -2.0, 2.0>}
          : (tensor<1x4xf32>, tensor<4x4xf32>, none) -> tensor<1x4xf32>
      %1 = "tfl.relu"(%0) {tfl.ranges = array<f32: 0.0, 2.0>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
      %c = "tfl.pseudo_const"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      %2 = "tfl.if"(%c, %1) <{then_branch = @then, else_branch = @else}> : (tensor<i1>, tensor<1x4xf32>)
          -> tensor<1x4xf32>
      func.return %2 : tensor<1x4xf32>
    }
    func.func private @then(%x: tensor<1x4xf32>) -> tensor<1x4xf32> attributes {tfl.ranges = array<f32: -1.0, 1.0>} {
      %0 = "tfl.abs"(%x) {tfl.ranges = array<f32: 0.0, 2.0>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
      func.return %0 : tensor<1x4xf32>
    }
    func.func private @else(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
      func.return %x : tensor<1x4xf32>
    }
"""


def test_only_products_are_integers_in_loops(filecheck: FileCheck) -> None:
    # A branch in a loop runs as often as the loop.
    filecheck(
        INT8,
        LOOP
        + """
    // CHECK: "tfl.fully_connected"{{.*}} -> tensor<1x4x!quant
    // CHECK: "tfl.relu"{{.*}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    // CHECK: "tfl.abs"{{.*}} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    """,
    )


def test_all_of_a_loop_is_integers_if_that_is_wanted(filecheck: FileCheck) -> None:
    filecheck(
        QuantizeOps(Quantize("int8", io="int8")),
        LOOP
        + """
    // CHECK: "tfl.relu"{{.*}} : (tensor<1x4x!quant
    // CHECK: "tfl.abs"{{.*}} : (tensor<1x4x!quant
    """,
    )


def test_comparisons_take_scales_below_one(filecheck: FileCheck) -> None:
    # The kernels abort otherwise. Zeros could have any scale, and get one that is small enough.
    filecheck(
        INT8,
        f"""
    func.func @main(%x: {X}, %y: {X}) -> (tensor<1x4xi1>, tensor<1x4xi1>)
        attributes {{tfl.ranges = array<f32: -1.0, 1.0, 0.0, 256.0>}} {{
      %z = "tfl.pseudo_const"() <{{value = dense<0.0> : tensor<f32>}}> : () -> tensor<f32>
      %0 = "tfl.greater"(%x, %z) : ({X}, tensor<f32>) -> tensor<1x4xi1>
      %1 = "tfl.less"(%y, %y) : ({X}, {X}) -> tensor<1x4xi1>
      func.return %0, %1 : tensor<1x4xi1>, tensor<1x4xi1>
    }}
    // CHECK: "tfl.greater"
    // CHECK-SAME: (tensor<1x4x!quant.uniform<i8:f32, 0.00012254903:-1>>, tensor<!quant.uniform<i8:f32, 0.5>>)
    // CHECK: "tfl.less"
    // CHECK-SAME: ({X}, {X})
    """,
    )


@pytest.mark.parametrize(
    ("op", "least"),
    [('"tfl.add"(%x, %x)', "1.51"), ('"tfl.squared_difference"(%x, %x)', "1.51"), ('"tfl.hard_swish"(%x)', "6.18")],
)
def test_results_are_not_finer_than_kernels_can_tell(filecheck: FileCheck, op: str, least: str) -> None:
    kinds = ", ".join([X] * op.count("%x"))
    body = f"%0 = {op} {{tfl.ranges = array<f32: 0.0, 1.0e-9>}} : ({kinds}) -> {X}"
    filecheck(
        INT8,
        _main(body) + f"// CHECK: -> tensor<1x4x!quant.uniform<i8:f32, {least}{{{{[0-9]+}}}}e-0{{{{[58]}}}}:-128>>",
    )
