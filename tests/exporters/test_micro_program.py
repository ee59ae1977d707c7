"""Lines for tflite-micro: operators by its names, those that it doesn't have, and the memory."""

from __future__ import annotations

from tests.converter.targets.litert.optimize.graph import Graph, f32, random
from tests.support.run_text import parse
from tfconvert.exporters.c_array import MicroProgram, micro_program
from tfconvert.exporters.tflite.model import export
from tfconvert.schema.dialects import types
from tfconvert.schema.tflite.arena import ALIGNMENT, bytes_of

_HANDLE = "tensor<!tf_type.resource<tensor<1x{}xf32>>>"


def test_operators_have_the_names_of_methods() -> None:
    program = MicroProgram(("BATCH_MATMUL", "CONV_2D", "CUMSUM", "GELU", "PADV2", "RELU6"), (), 1024)
    assert program.operator_count == 5
    assert [line.strip() for line in program.lines("net")][-8:] == [
        "void net_add_operators(Resolver& resolver) {",
        "resolver.AddBatchMatMul();",
        "resolver.AddConv2D();",
        "resolver.AddCumSum();",
        "// GELU: tflite-micro does not have it.",
        "resolver.AddPadV2();",
        "resolver.AddRelu6();",
        "}",
    ]
    assert "//   tflite::MicroMutableOpResolver<5> resolver;" in program.lines("net")


def test_custom_operators_are_counted() -> None:
    program = MicroProgram((), ("TFLite_Detection_PostProcess", "Mine"), 1024)
    assert program.operator_count == 2
    lines = [line.strip() for line in program.lines("net")]
    assert "resolver.AddDetectionPostprocess();" in lines
    assert '// resolver.AddCustom("Mine", ...): a custom operator.' in lines


def test_no_operators_are_no_warning() -> None:
    assert "  (void)resolver;" in MicroProgram((), (), 0).lines("net")


def test_memory_is_that_of_tensors_which_live_together_and_more() -> None:
    graph = Graph((1, 32, 32, 8))
    value = graph.conv(graph.inputs[0], random(8, 3, 3, 8), f32([1] * 8))
    value = graph.op("relu", graph.conv(value, random(8, 3, 3, 8)))
    graph.returns(graph.op("batch_matmul", value, value, shape=(1, 32, 32, 32), element=types.F32, adj_y=True))
    program = micro_program(graph.content)
    image, result = 4 * 32 * 32 * 8, 4 * 32 * 32 * 32
    assert program.operators == ("BATCH_MATMUL", "CONV_2D", "RELU")
    assert image + result < program.arena < 1.2 * (2 * image + result)
    assert program.arena % 16 == 0


def test_tensors_are_aligned() -> None:
    assert bytes_of((3,), "INT8") == ALIGNMENT
    assert bytes_of((3, -1, 6), "INT8", 16) == 32


def test_dynamic_sizes_are_those_of_the_estimate() -> None:
    graph = Graph((-1, -1, 3))
    graph.returns(graph.op("relu", graph.inputs[0]))
    lines = list(micro_program(graph.content).lines("net"))
    assert [line for line in lines if "[?,?,3] as [1,1,3]" in line], lines
    assert any(line.startswith("// WARNING: the model has dynamic sizes") for line in lines)
    fixed = Graph((2, 2, 3))
    fixed.returns(fixed.op("relu", fixed.inputs[0]))
    assert not any("WARNING" in line for line in micro_program(fixed.content).lines("net"))


def test_variables_have_their_number_and_memory() -> None:
    def program(size: int) -> MicroProgram:
        text = f"""
            func.func @main(%x: tensor<1x{size}xf32>) -> tensor<1x{size}xf32> {{
              %h = "tfl.var_handle"() {{container = "", shared_name = "state"}} : () -> {_HANDLE.format(size)}
              %v = "tfl.read_variable"(%h) : ({_HANDLE.format(size)}) -> tensor<1x{size}xf32>
              "tfl.assign_variable"(%h, %x) : ({_HANDLE.format(size)}, tensor<1x{size}xf32>) -> ()
              func.return %v : tensor<1x{size}xf32>
            }}"""
        return micro_program(export(parse(text)).to_bytes())

    small, large = program(4), program(1024)
    assert small.variables == large.variables == 1
    # The value is kept besides the input and the output.
    assert large.arena - small.arena > 3 * 4 * 1020
    lines = list(large.lines("net"))
    assert "constexpr unsigned int net_variable_count = 1;" in lines
    assert any("MicroResourceVariables::Create(allocator, net_variable_count)" in line for line in lines)
    assert not any("variable" in line.lower() for line in MicroProgram(("ADD",), (), 0).lines("net"))
