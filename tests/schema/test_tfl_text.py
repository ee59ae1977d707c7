"""Options of `tfl` ops in the spellings of TensorFlow's MLIR: however they are written, the file is the same."""

from __future__ import annotations

import io

import pytest

from tfconvert.exporters.tflite.model import export
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data, tfl, tfl_file
from tfconvert.schema.dialects.printing import print_module
from tfconvert.schema.dialects.tfl import TFLOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.tflite.reader import read_model


def module_of(op: str, signature: str) -> str:
    """Returns the text of a module of one op, whose operands are the function's arguments."""
    operands, _, result = signature.partition(" -> ")
    types = [part for part in operands.strip("()").split(", ") if part]
    arguments = ", ".join(f"%{index}: {kind}" for index, kind in enumerate(types))
    values = ", ".join(f"%{index}" for index in range(len(types)))
    name, _, options = op.partition(" ")
    body = f'%r = "tfl.{name}"({values}) {options} : {signature}'
    return f"func.func @main({arguments}) -> {result} {{ {body} func.return %r : {result} }}"


def op_of(text: str) -> TFLOp:
    (function,) = import_mlir(text).ops
    op = function.regions[0].block.first_op
    assert isinstance(op, TFLOp)
    return op


ADD = "(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"
ONE = "(tensor<2xf32>) -> tensor<2xf32>"
POOL = "(tensor<1x6x6x2xf32>) -> tensor<1x2x2x2xf32>"
POOL_OPTIONS = (
    'stride_h = 3 : i32, stride_w = 3 : i32, filter_height = 3 : i32, filter_width = 3 : i32, padding = "VALID"'
)


@pytest.mark.parametrize(
    ("name", "options", "signature", "expected"),
    [
        ("add", 'fused_activation_function = "RELU"', ADD, {"fused_activation_function": "RELU"}),
        ("leaky_relu", "alpha = 1.5 : f32", ONE, {"alpha": 1.5}),
        ("average_pool_2d", POOL_OPTIONS, POOL, {"stride_h": 3, "filter_width": 3, "padding": "VALID"}),
        (
            "bucketize",
            "boundaries = [0.5 : f32, 2.0 : f32]",
            ONE.replace("-> tensor<2xf32>", "-> tensor<2xi32>"),
            {"boundaries": (0.5, 2.0)},
        ),
    ],
)
def test_options_in_braces_are_options(name: str, options: str, signature: str, expected: dict[str, object]) -> None:
    braces, angles = (module_of(f"{name} {form}", signature) for form in (f"{{{options}}}", f"<{{{options}}}>"))
    op = op_of(braces)
    assert not op.attributes
    assert {key: tfl.attribute(op, key) for key in expected} == expected
    assert export(import_mlir(braces)).to_bytes() == export(import_mlir(angles)).to_bytes()


def test_constants_and_custom_ops_in_braces() -> None:
    constant = op_of(module_of("pseudo_const {value = dense<[1, 2]> : tensor<2xi32>}", "() -> tensor<2xi32>"))
    assert set(constant.properties) == {"value"}
    options = '{custom_code = "Mine", custom_option = #tfl<const_bytes : "0x01">}'
    custom = op_of(module_of(f"custom {options}", ONE))
    assert tfl.attribute(custom, "custom_code") == "Mine"
    assert tfl.python_value(custom.properties["custom_option"]) == b"\1"


PAD = "(tensor<4xf32>, tensor<1x2xi32>) -> tensor<6xf32>"
TABLE = "() -> tensor<1x!tf_type.resource>"


@pytest.mark.parametrize(
    ("op", "signature", "option", "value"),
    [
        ("mirror_pad <{mode = #tfl<mirror_pad_attr SYMMETRIC>}>", PAD, "mode", "SYMMETRIC"),
        ("mirror_pad {mode = #tfl<mirror_pad_attr SYMMETRIC>}", PAD, "mode", "SYMMETRIC"),
        ("hashtable {key_dtype = !tf_type.string, value_dtype = i64}", TABLE, "key_dtype", "STRING"),
        ("squeeze {squeeze_dims = [1, -1 : i64]}", ONE, "squeeze_dims", (1, -1)),
        ("squeeze {squeeze_dims = array<i64: 1, -1>}", ONE, "squeeze_dims", (1, -1)),
        ("softmax {beta = 2.0}", ONE, "beta", 2.0),
        ("arg_max {output_type = 4 : i32}", "(tensor<2xf32>, tensor<i32>) -> tensor<i64>", "output_type", "INT64"),
        ("arg_max", "(tensor<2xf32>, tensor<i32>) -> tensor<i64>", "output_type", "INT64"),
        ("shape", "(tensor<2xf32>) -> tensor<1xi32>", "out_type", "INT32"),
    ],
)
def test_spellings_of_values(op: str, signature: str, option: str, value: object) -> None:
    parsed = op_of(module_of(op, signature))
    assert not parsed.attributes
    assert tfl.attribute(parsed, option) == value
    assert tfl.attribute(op_of(str(parsed.parent_op())), option) == value


def test_functions_are_named_by_strings_or_symbols() -> None:
    for name in ('"init"', "@init"):
        call = f'func.func @main() {{ "tfl.call_once"() {{session_init_function = {name}}} : () -> () return }}'
        main, _ = import_mlir(f"{call} func.func @init() {{ return }}").ops
        op = main.regions[0].block.first_op
        assert isinstance(op, TFLOp)
        assert tfl.attribute(op, "session_init_function") == "init"


@pytest.mark.parametrize(
    ("op", "signature", "message"),
    [
        ('add {fused_activation = "RELU"}', ADD, "tfl.add has no property 'fused_activation'"),
        ("pseudo_const {value = dense<1> : tensor<i32>, s_param = 1}", "() -> tensor<i32>", "no property 's_param'"),
        ("pseudo_const <{value = dense<1> : tensor<i32>, s_param = 1}>", "() -> tensor<i32>", "no property 's_param'"),
        ('custom {custom_code = "Mine", axis = 1}', ONE, "tfl.custom has no property 'axis'"),
        ('add {fused_activation_function = "RELU9"}', ADD, 'can\'t be "RELU9"'),
        ("add {fused_activation_function = 99 : i32}", ADD, "can't be 99"),
        ("mirror_pad {mode = #tfl<mirror_pad_attr SIDEWAYS>}", PAD, 'can\'t be "SIDEWAYS"'),
        ("average_pool_2d {stride_h = 4294967296 : i64}", POOL, "can't be 4294967296"),
        ("hashtable {key_dtype = index}", TABLE, "can't be index"),
        ('add <{fused_activation_function = "RELU"}> {fused_activation_function = "RELU6"}', ADD, "have one value"),
    ],
)
def test_invalid_options_are_rejected(op: str, signature: str, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        import_mlir(module_of(op, signature))
    assert message in str(caught.value)


def test_attributes_of_dialects_stay() -> None:
    op = op_of(module_of('add {_tfl_quant_trait = "fully_quantizable", tfl.operator = {}}', ADD))
    assert set(op.attributes) == {"_tfl_quant_trait", "tfl.operator"}


def import_of(body: str, signature: str = "(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32>") -> ModuleOp:
    result = signature.rpartition("-> ")[2]
    return import_mlir(f"func.func @main{signature} {{ {body} func.return %r : {result} }}")


def ops_of(module: ModuleOp) -> list[Operation]:
    (function,) = module.ops
    return list(function.regions[0].block.ops)


@pytest.mark.parametrize(
    ("pretty", "generic"),
    [
        (
            'tfl.add %a, %b {fused_activation_function = "RELU"} : tensor<2xf32>',
            f'"tfl.add"(%a, %b) <{{fused_activation_function = "RELU"}}> : {ADD}',
        ),
        (
            f'tfl.mul(%a, %b) <{{fused_activation_function = "NONE"}}> : {ADD}',
            f'"tfl.mul"(%a, %b) <{{fused_activation_function = "NONE"}}> : {ADD}',
        ),
        (f"tfl.minimum(%a, %b) : {ADD}", f'"tfl.minimum"(%a, %b) : {ADD}'),
        ("tfl.squared_difference %a, %b : tensor<2xf32>", f'"tfl.squared_difference"(%a, %b) : {ADD}'),
        ("tfl.floor_mod %a, %b : tensor<2xf32>", f'"tfl.floor_mod"(%a, %b) : {ADD}'),
        ("tfl.abs %a : tensor<2xf32>", f'"tfl.abs"(%a) : {ONE}'),
    ],
)
def test_pretty_forms_are_the_generic_ones(pretty: str, generic: str) -> None:
    one, other = (import_of(f"%r = {form}") for form in (pretty, generic))
    assert str(one) == str(other)
    assert export(one).to_bytes() == export(other).to_bytes()
    assert str(import_mlir(str(one))) == str(one)


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
def test_pretty_comparisons(name: str) -> None:
    kind = "(tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>"
    op = ops_of(import_of(f"%r = tfl.{name}(%a, %b) : {kind}", kind.replace("(t", "(%a: t").replace(", ", ", %b: ")))[0]
    assert (op.name, [str(each) for each in op.result_types]) == (f"tfl.{name}", ["tensor<2xi1>"])


def test_a_pretty_form_without_a_type_is_refused() -> None:
    with pytest.raises(ConversionError, match=r"Expected ':' before the type"):
        import_of("%r = tfl.add %a, %b")
    with pytest.raises(ConversionError, match=r"tfl\.no_such_op is not registered"):
        import_of("%r = tfl.no_such_op %a, %b : tensor<2xf32>")


CONTROL = """
    %0, %first = tfl.control_node controls "tfl.exp"(%a) : (tensor<2xf32>) -> tensor<2xf32>
    %r, %second = tfl.control_node(%first) {
      %1 = tfl.add %0, %b {fused_activation_function = "NONE"} : tensor<2xf32>
      "tfl.yield"(%1) : (tensor<2xf32>) -> ()
    } {mark}
    %last = tfl.control_node(%first, %second) {
      "tfl.yield"() : () -> ()
    }
"""


def test_control_nodes() -> None:
    module = import_of(CONTROL)
    first, second, last, _ = ops_of(module)
    assert [str(kind) for kind in first.result_types] == ["tensor<2xf32>", "!tfl.control"]
    assert (list(second.operands), set(second.attributes)) == ([first.results[1]], {"mark"})
    assert [len(op.operands) for op in (first, second, last)] == [0, 1, 2]
    assert [op.name for op in second.regions[0].block.ops] == ["tfl.add", "tfl.yield"]
    assert str(import_mlir(str(module))) == str(module)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f'%r, %c = tfl.control_node(%a) controls "tfl.exp"(%a) : {ONE}', "is used with type"),
        (f'%r, %c = tfl.control_node {{ %0 = "tfl.exp"(%a) : {ONE} }}', "must end in|terminat"),
        (
            '"tfl.yield"(%a) : (tensor<2xf32>) -> () %r = "tfl.exp"(%a) : (tensor<2xf32>) -> tensor<2xf32>',
            "must be the last operation",
        ),
        (
            '%r = "tfl.custom_tf"(%a) ({ ^bb0(%x: tensor<3xf32>): "tfl.yield"(%x) : (tensor<3xf32>) -> () })'
            " : (tensor<2xf32>) -> tensor<2xf32>",
            "the types of its operands",
        ),
        (
            '%r = "tfl.custom_tf"(%a) ({ ^bb0(%x: tensor<2xf32>): "tfl.yield"() : () -> () })'
            " : (tensor<2xf32>) -> tensor<2xf32>",
            "the types of its results",
        ),
        ('%r = "tfl.custom_tf"(%a) : (tensor<2xf32>) -> tensor<2xf32>', "one region of one block"),
    ],
)
def test_regions_that_break_a_rule_are_refused(body: str, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        import_of(body)


LOOP = """
    %c = arith.constant dense<true> : tensor<i1>
    %0:2 = "tfl.while"(%a, %b) <{is_stateless = true}> ({
    ^bb0(%x: tensor<2xf32>, %y: tensor<2xf32>):
      "tfl.yield"(%c) : (tensor<i1>) -> ()
    }, {
    ^bb0(%x: tensor<2xf32>, %y: tensor<2xf32>):
      "tfl.yield"(%y, BACK) : (tensor<2xf32>, TYPE) -> ()
    }) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    %r = "tfl.if"(%c) ({ "tfl.yield"(%0#0) : (tensor<2xf32>) -> () }, { "tfl.yield"(%0#1) : (tensor<2xf32>) -> () })
      : (tensor<i1>) -> tensor<2xf32>
"""


def test_loops_and_conditionals_with_regions() -> None:
    module = import_of(LOOP.replace("BACK", "%x").replace("TYPE", "tensor<2xf32>"))
    assert [op.name for op in ops_of(module)] == ["arith.constant", "tfl.while", "tfl.if", "func.return"]
    assert str(import_mlir(str(module))) == str(module)
    with pytest.raises(ConversionError, match="number 1 of the values yielded by the body region"):
        import_of(LOOP.replace("BACK", "%c").replace("TYPE", "tensor<i1>"))


def test_a_basic_lstm_is_an_lstm_of_that_kernel() -> None:
    kinds = ", ".join(["tensor<1x2xf32>", "tensor<1x4xf32>", "tensor<16x6xf32>", "tensor<16xf32>", "tensor<1x4xf32>"])
    results = ", ".join(["tensor<1x4xf32>"] * 2 + ["tensor<1x6xf32>", "tensor<1x16xf32>"])
    options = (
        'cell_clip = 1.0 : f32, fused_activation_function = "TANH", '
        "kernel_type = #tfl<lstm_kernel_type_attr BASIC>, proj_clip = 2.0 : f32"
    )
    arguments = ", ".join(f"%{index}: {kind}" for index, kind in enumerate(kinds.split(", ")))
    op = f'%r:4 = "tfl.basic_lstm"(%0, %1, %2, %3, %4) <{{{options}}}> : ({kinds}) -> ({results})'
    text = f"func.func @main({arguments}) -> tensor<1x4xf32> {{ {op} func.return %r#0 : tensor<1x4xf32> }}"
    lstm = op_of(text)
    assert (lstm.name, tfl.attribute(lstm, "kernel_type"), tfl.attribute(lstm, "cell_clip")) == ("tfl.lstm", "BASIC", 1)
    assert str(op_of(str(lstm.parent_op()))) == str(lstm)


def test_the_tensors_inside_a_kernel() -> None:
    inside = "input_to_cell_intermediate = tensor<0xf32>, effective_hidden_scale_intermediate = tensor<0xi8>"
    op = op_of(module_of(f"lstm <{{{inside}}}>", ONE))
    items = tfl_file.dictionaries(op.attributes[tfl_file.INTERMEDIATES])
    assert [str(item) for item in items] == ["{}", "{}", "{tensor = tensor<0xf32>}", "{}", "{tensor = tensor<0xi8>}"]


def test_custom_options_as_text() -> None:
    for option, data in (('"ab\\00\\FF"', b"ab\0\xff"), ('"text"', b"text"), ('#tfl<const_bytes : "0x">', b"")):
        op = op_of(module_of(f'custom {{custom_code = "Mine", custom_option = {option}}}', ONE))
        assert tfl.python_value(op.properties["custom_option"]) == data
        assert str(op_of(str(op.parent_op()))) == str(op)


def test_marks_of_quantization_change_nothing() -> None:
    kind = "tensor<2x!quant.uniform<u8:f32, 0.5:3>>"
    signature = f"() -> {kind}"
    constant = op_of(
        module_of(f"pseudo_qconst <{{qtype = {kind}, value = dense<[1, -1]> : tensor<2xi8>}}> {{volatile}}", signature)
    )
    value = constant.properties["value"]
    assert tensor_data.to_array(value).tolist() == [1, 255]
    assert str(op_of(str(constant.parent_op()))) == str(constant)
    quantized = op_of(module_of(f"quantize <{{qtype = {kind}}}> {{volatile}}", f"(tensor<2xf32>) -> {kind}"))
    assert not quantized.properties
    with pytest.raises(ConversionError, match="no property 'qtype'"):
        import_mlir(module_of("quantize <{qtype = tensor<2xi8>}>", f"(tensor<2xf32>) -> {kind}"))


def test_constants_in_files_beside_the_model() -> None:
    buffer = '#tfl.external_buffer<group_name = "{}", offset = {}, length = 8, packing = "unpacked">'
    constants = [
        f'%{name} = "tfl.external_const"() <{{external_buffer = {buffer.format(group, offset)}}}> : () -> tensor<2xf32>'
        for name, group, offset in (("x", "a.bin", 0), ("y", "b.bin", 0), ("z", "a.bin", 8))
    ]
    sums = (
        'tfl.add %x, %y {fused_activation_function = "NONE"} : tensor<2xf32> %r = tfl.add %0, %z '
        '{fused_activation_function = "NONE"} : tensor<2xf32>'
    )
    model = read_model(export(import_of(" ".join([*constants, "%0 =", sums]))).to_bytes())
    assert [group["name"] for group in model["external_buffer_groups"]] == ["a.bin", "b.bin"]
    found = [(each["id"], each["group"], each["offset"], each["length"]) for each in model["external_buffers"]]
    assert found == [(1, 0, 0, 8), (2, 1, 0, 8), (3, 0, 8, 8)]
    assert sorted(tensor["external_buffer"] for tensor in model["subgraphs"][0]["tensors"]) == [0, 0, 0, 0, 1, 2, 3]


def test_sparse_constants() -> None:
    sparsity = (
        "#tfl.sparsity_parameter<traversal_order = [0, 1], block_map = [], dim_metadata = "
        "<format = DENSE, dense_size = 3, segments = [], indices = []>, "
        "<format = SPARSE_CSR, dense_size = 0, segments = [0, 1, 2, 2], indices = [0, 300]>>"
    )
    stored = "compressed_data = dense<[1.0, 2.0]> : tensor<2xf32>"
    kind = "tensor<3x301xf32>"
    options = f"{stored}, s_param = {sparsity}, value = dense<0.0> : {kind}"
    op = f'%0 = "tfl.pseudo_sparse_const"() <{{{options}}}> : () -> {kind}'
    use = f"%r = tfl.abs %0 : {kind}"
    tensor, _ = read_model(export(import_of(f"{op} {use}", f"() -> {kind}")).to_bytes())["subgraphs"][0]["tensors"]
    dense, compressed = tensor["sparsity"]["dim_metadata"]
    assert (dense["format"], dense["dense_size"], compressed["format"]) == (0, 3, 1)
    assert compressed.tree()["array_segments"][0] == "Uint8Vector"
    name, indices = compressed.tree()["array_indices"]
    assert (name, list(indices["values"])) == ("Uint16Vector", [0, 300])


@pytest.mark.parametrize("dialect", ["arith.constant", "stablehlo.constant", "mhlo.constant"])
@pytest.mark.parametrize(
    "value",
    [
        "dense<1.500000e+00> : tensor<2xbf16>",
        "dense<[1.0, 2.0]> : tensor<2xf16>",
        "dense<true> : tensor<2xi1>",
        'dense<["a", "b\\22"]> : tensor<2x!tf_type.string>',
        "dense<(1.0,-2.0)> : tensor<2xcomplex<f32>>",
        "dense<3.0> : tensor<1024x512xf32>",
        "dense<> : tensor<0x3xi64>",
        'dense<"0x0000803F00000040"> : tensor<2xf32>',
    ],
)
def test_constants_of_other_dialects(dialect: str, value: str) -> None:
    kind = value.partition(" : ")[2]
    module = import_of(f"%r = {dialect} {value}", f"() -> {kind}")
    stream = io.StringIO()
    print_module(module, stream, elide=None)
    again = import_mlir(stream.getvalue())
    constants = [ops_of(each)[0].properties["value"] for each in (module, again)]
    one, other = map(tensor_data.to_array, constants)
    assert (one.shape, one.dtype, one.tolist()) == (other.shape, other.dtype, other.tolist())


def test_constants_of_versioned_stablehlo() -> None:
    kind = "!vhlo.tensor_v1<2x!vhlo.f32_v1>"
    op = f'%r = "vhlo.constant_v1"() <{{value = #vhlo.tensor_v1<dense<[1.0, 2.0]> : tensor<2xf32>>}}> : () -> {kind}'
    assert str(ops_of(import_of(op, "() -> tensor<2xf32>"))[0].result_types[0]) == "tensor<2xf32>"


def test_a_constant_that_was_left_out_is_read_but_not_exported() -> None:
    module = import_of(
        '%0 = "tfl.pseudo_const"() <{value = dense_resource<__elided__> : tensor<2xf32>}> : () -> tensor<2xf32> '
        "%r = tfl.minimum %a, %0 : tensor<2xf32>"
    )
    assert "dense_resource<__elided__>" in str(module)
    with pytest.raises(ConversionError) as caught:
        export(module)
    assert [problem.code for problem in caught.value.diagnostics] == ["missing-value"]
