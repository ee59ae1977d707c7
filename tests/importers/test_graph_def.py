"""GraphDefs: feeds and fetches by name, and hostile graphs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tfconvert
from tfconvert.importers.graph.attributes import import_tensor
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.selection import Selection

GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "parts" op: "Split" input: "axis" input: "x" attr { key: "num_split" value { i: 2 } }
       attr { key: "T" value { type: DT_FLOAT } } }
node { name: "sum" op: "AddV2" input: "parts" input: "parts:1" input: "^relu"
       attr { key: "T" value { type: DT_FLOAT } } }
node { name: "relu" op: "Relu" input: "parts:1" attr { key: "T" value { type: DT_FLOAT } } }
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "graph.pb"
    path.write_bytes(text_format.Parse(text, pb.GraphDef()).SerializeToString(deterministic=True))
    return path


def failure(path: Path, **arguments: object) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        import_graph_def(path, Selection(**arguments))  # type: ignore[arg-type]
    return caught.value


def test_defaults_are_placeholders_and_unused_nodes(tmp_path: Path) -> None:
    text = str(import_graph_def(write(tmp_path, GRAPH)))
    assert 'inputs = "x", outputs = "sum"' in text
    assert "tensor<?x2xf32>" in text


def test_text_and_binary_are_the_same(tmp_path: Path) -> None:
    textual = tmp_path / "graph.pbtxt"
    textual.write_text(GRAPH)
    assert str(import_graph_def(textual)) == str(import_graph_def(write(tmp_path, GRAPH)))


def test_files_may_have_misleading_names(tmp_path: Path) -> None:
    textual, binary = tmp_path / "text.pb", tmp_path / "binary.pbtxt"
    textual.write_text(GRAPH)
    binary.write_bytes(write(tmp_path, GRAPH).read_bytes())
    assert str(import_graph_def(textual)) == str(import_graph_def(binary))


def test_text_that_nests_without_end_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "deep.pbtxt"
    opening = 'func { attr { key: "a" value { '
    path.write_text('node { attr { key: "a" value { ' + opening * 3000 + "} } }" * 3000 + "} } }")
    assert failure(path).code == "not-a-graph-def"


@pytest.mark.parametrize(
    ("versions", "is_newer"),
    [
        ("producer: 9999 min_consumer: 2474", False),
        ("min_consumer: 2475", True),
        ("bad_consumers: 2474", True),
        ("producer: 0", False),
        ("bad_consumers: 12", False),
    ],
)
def test_graphs_declare_who_can_read_them(tmp_path: Path, versions: str, is_newer: bool) -> None:
    path = write(tmp_path, f"{GRAPH} versions {{ {versions} }}")
    if is_newer:
        assert failure(path).code == "newer-graph"
    else:
        assert str(import_graph_def(path))


def test_inputs_are_those_that_outputs_need_unless_named(tmp_path: Path) -> None:
    label = 'node { name: "label" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'
    path = write(tmp_path, GRAPH + label)
    assert 'inputs = "x"' in str(import_graph_def(path))
    assert 'inputs = "label,x"' in str(import_graph_def(path, Selection(inputs=["label", "x"])))


def test_a_placeholder_with_a_default_is_fed_if_it_is_named_or_given_a_shape(tmp_path: Path) -> None:
    graph = """
    node { name: "zeros" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 0 } } } }
    node { name: "x" op: "PlaceholderWithDefault" input: "zeros" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: -1 } } } } }
    node { name: "y" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }"""
    path = write(tmp_path, graph)
    assert "tf.PlaceholderWithDefault" in str(import_graph_def(path))
    assert "func.func @main(%0: tensor<?xf32>)" in str(import_graph_def(path, Selection(inputs=["x"])))
    assert "func.func @main(%0: tensor<7xf32>)" in str(import_graph_def(path, Selection(input_shapes={"x": [7]})))


def test_a_node_that_only_does_something_is_not_an_output(tmp_path: Path) -> None:
    problem = failure(write(tmp_path, GRAPH + 'node { name: "init" op: "NoOp" input: "^relu" }'), outputs=["init"])
    assert problem.code == "missing-output"
    assert "no outputs" in str(problem)


def test_variables_without_values_are_all_reported(tmp_path: Path) -> None:
    variable = """node { name: "%s" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
                          attr { key: "shape" value { shape { } } } }"""
    add = 'node { name: "y" op: "Add" input: "v" input: "w" attr { key: "T" value { type: DT_FLOAT } } }'
    problem = failure(write(tmp_path, variable % "v" + variable % "w" + add), outputs=["y"])
    assert problem.code == "no-checkpoint"
    assert [each.node for each in problem.diagnostics] == ["v", "w"]


def test_controls_order_islands(tmp_path: Path) -> None:
    text = str(import_graph_def(write(tmp_path, GRAPH)))
    assert text.index("tf.Relu") < text.index("tf.AddV2")


def test_any_tensor_can_be_fed_and_its_producers_are_removed(tmp_path: Path) -> None:
    text = str(import_graph_def(write(tmp_path, GRAPH), Selection(inputs=["parts:1"], outputs=["relu"])))
    assert "tf.Split" not in text
    assert "tf.Relu" in text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"outputs": ["relux"]}, "unknown-tensor"),
        ({"inputs": ["y"]}, "unknown-tensor"),
        ({"outputs": ["parts:5"]}, "missing-output"),
        ({"inputs": ["parts:5"]}, "missing-output"),
        ({"input_shapes": {"q": [1]}}, "unknown-input"),
        ({"input_shapes": {"x": [1, 3]}}, "shape-mismatch"),
    ],
)
def test_wrong_names_are_reported(tmp_path: Path, arguments: dict[str, object], code: str) -> None:
    assert failure(write(tmp_path, GRAPH), **arguments).code == code


def test_a_close_name_is_suggested(tmp_path: Path) -> None:
    assert "relu" in failure(write(tmp_path, GRAPH), outputs=["relux"]).diagnostics[0].hint


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('node { name: "a" op: "Relu" input: "b" attr { key: "T" value { type: DT_FLOAT } } }', "missing-node"),
        (
            'node { name: "a" op: "Relu" input: "b" attr { key: "T" value { type: DT_FLOAT } } }'
            'node { name: "b" op: "Relu" input: "a" attr { key: "T" value { type: DT_FLOAT } } }'
            'node { name: "c" op: "Relu" input: "a" attr { key: "T" value { type: DT_FLOAT } } }',
            "cyclic-graph",
        ),
        ('node { name: "a" op: "NoSuchOp" }', "unknown-op"),
        ('node { name: "a" op: "Placeholder" }', "bad-attribute"),
        (
            'node { name: "a" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } '
            'attr { key: "shape" value { s: "2" } } }',
            "bad-attribute",
        ),
        (
            'node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { '
            "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 9999999999999 } } float_val: 1 } } } }",
            "bad-tensor",
        ),
        (
            'node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { '
            'tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } tensor_content: "abc" } } } }',
            "bad-tensor",
        ),
    ],
)
def test_broken_graphs_end_in_an_error(tmp_path: Path, text: str, code: str) -> None:
    path = write(tmp_path, text)
    name = "c" if code == "cyclic-graph" else "a"
    assert failure(path, inputs=[], outputs=[name]).code == code


def test_a_deep_graph_needs_no_recursion(tmp_path: Path) -> None:
    nodes = ['node { name: "n0" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }']
    nodes += [
        f'node {{ name: "n{i}" op: "Relu" input: "n{i - 1}" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}'
        for i in range(1, 5000)
    ]
    module = import_graph_def(write(tmp_path, "\n".join(nodes)), Selection(outputs=["n4999"]))
    assert sum(op.name == "tf.Relu" for op in module.walk()) == 4999


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            'op: "DepthToSpace" input: "x" attr { key: "data_format" value { s: "HWCN" } } '
            'attr { key: "T" value { type: DT_FLOAT } } attr { key: "block_size" value { i: 2 } }',
            "'HWCN'",
        ),
        (
            'op: "DepthToSpace" input: "x" attr { key: "T" value { type: DT_FLOAT } } '
            'attr { key: "block_size" value { i: 1 } }',
            "at least 2",
        ),
        ('op: "Pack" attr { key: "N" value { i: 0 } } attr { key: "T" value { type: DT_FLOAT } }', "at least 1"),
        ('op: "IdentityN" attr { key: "T" value { list { } } }', "length 0"),
        ('op: "Elu" input: "x" attr { key: "T" value { type: DT_INT32 } }', "one of bf16, f16, f32, f64"),
        ('op: "Elu" input: "x" attr { key: "T" value { i: 1 } }', "instead of 'type'"),
    ],
)
def test_attributes_keep_the_limits_of_their_op(tmp_path: Path, node: str, message: str) -> None:
    problem = failure(write(tmp_path, GRAPH + f'node {{ name: "a" {node} }}'), outputs=["a"])
    assert problem.code == "bad-attribute"
    assert message in str(problem)
    assert problem.diagnostics[0].node == "a"


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 10_000), value=st.integers(0, 255), cut=st.booleans())
@example(position=42, value=8, cut=False)
def test_damaged_bytes_never_crash(tmp_path: Path, position: int, value: int, cut: bool) -> None:
    data = bytearray(text_format.Parse(GRAPH, pb.GraphDef()).SerializeToString(deterministic=True))
    position %= len(data)
    path = tmp_path / "damaged.pb"
    if cut:
        del data[position:]
    else:
        data[position] = value
    path.write_bytes(bytes(data))
    with suppress(ConversionError):
        # Shapes that contradict an op, as a scalar that is split, are left to shape inference.
        verify(import_graph_def(path), with_relations=False)


def test_damaged_shapes_are_found_by_the_conversion(tmp_path: Path) -> None:
    data = bytearray(text_format.Parse(GRAPH, pb.GraphDef()).SerializeToString(deterministic=True))
    data[42] = 8  # The placeholder's shape becomes that of a scalar.
    path = tmp_path / "damaged.pb"
    path.write_bytes(bytes(data))
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path)
    assert caught.value.code == "shape-mismatch"


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    assert failure(tmp_path / "nothing.pb").code == "unreadable-file"


def test_tensor_protos_repeat_their_last_value() -> None:
    proto = text_format.Parse(
        "dtype: DT_FLOAT tensor_shape { dim { size: 4 } } float_val: 1 float_val: 2", pb.TensorProto()
    )
    np.testing.assert_array_equal(tensor_data.to_array(import_tensor(proto, "c")), [1, 2, 2, 2])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int64", "bool", "complex64", "bfloat16"])
def test_tensor_protos_match_tensorflow(tf: object, dtype: str) -> None:
    values = tf.cast(tf.constant([[0, 1, 2], [3, 4, 5]]), dtype)  # type: ignore[attr-defined]
    for value in (values.numpy(), values[:1, :1].numpy()):
        proto = pb.TensorProto.FromString(tf.make_tensor_proto(value).SerializeToString())  # type: ignore[attr-defined]
        got = tensor_data.to_array(import_tensor(proto, "c"))
        assert got.dtype == value.dtype
        np.testing.assert_array_equal(got, value)
