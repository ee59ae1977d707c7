"""Flex ops: equal bytes to the official converter's, results in TensorFlow, and ops that can't be flex ops."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from flatbuffers import flexbuffers

import tfconvert
from tests.support.run_text import parse
from tfconvert.cli.main import main
from tfconvert.converter.targets.litert.flex import conversion
from tfconvert.converter.targets.litert.flex.conversion import node_def
from tfconvert.converter.targets.litert.passes.legalize import Legalize
from tfconvert.schema.dialects import tf as dialect
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

Model = tuple[Callable[..., Any], Sequence[Any]]
TEXTS = np.array([b"A b", b"c D\xff"], object)
MATRIX = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)

# One that is not decomposed.
LARGE = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32)

MODELS: Mapping[str, Callable[[Any], Model]] = {
    "MatrixDeterminant": lambda tf: (tf.linalg.det, [LARGE]),
    "Qr": lambda tf: (tf.linalg.qr, [LARGE]),
    "StringJoin": lambda tf: (lambda s: tf.strings.join([s, s], separator="-"), [TEXTS]),
    "StringLower": lambda tf: (tf.strings.lower, [TEXTS]),
    "StringSplitV2": lambda tf: (lambda s: tf.strings.split(s).flat_values, [TEXTS]),
    "StringToHashBucketFast": lambda tf: (lambda s: tf.strings.to_hash_bucket_fast(s, 10), [TEXTS]),
    "ParseExampleV2": lambda tf: (
        lambda s: tf.io.parse_example(
            s, {"a": tf.io.FixedLenFeature([2], tf.float32, [1, 2]), "b": tf.io.VarLenFeature(tf.int64)}
        )["a"],
        [np.array([b"", b""], object)],
    ),
    "DecodePng": lambda tf: (
        lambda s: tf.io.decode_png(s, channels=3),
        [tf.io.encode_png(np.arange(12, dtype=np.uint8).reshape(2, 2, 3)).numpy()],
    ),
    "AsString": lambda tf: (lambda x: tf.strings.as_string(x, precision=2), [MATRIX]),
    "Dilation2D": lambda tf: (
        lambda x: tf.nn.dilation2d(x, tf.zeros([9, 9, 3]), [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]),
        [np.ones((1, 4, 4, 3), np.float32)],
    ),
    "CTCGreedyDecoder": lambda tf: (
        lambda x, n: tf.nn.ctc_greedy_decoder(x, n)[0][0].values,
        [np.ones((5, 1, 4), np.float32), np.array([5], np.int32)],
    ),
}
"""By the op of which TensorFlow's kernel is needed: a function and its inputs."""


def _save(tf: ModuleType, folder: Path, models: Mapping[str, Model]) -> Path:
    """Saves a model with a signature for each function."""
    module = tf.Module()
    module.functions = {name: _function(tf, *model) for name, model in models.items()}
    tf.saved_model.save(module, str(folder), signatures=module.functions)
    return folder


def _function(tf: ModuleType, function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    specs = [tf.TensorSpec(np.shape(each), tf.as_dtype(getattr(each, "dtype", object))) for each in inputs]
    return tf.function(lambda *args: tf.nest.flatten(function(*args)), input_signature=specs, autograph=False)


@pytest.fixture(scope="module")
def saved(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory of a model with all `MODELS` as signatures."""
    return _save(tf, tmp_path_factory.mktemp("flex"), {name: model(tf) for name, model in MODELS.items()})


def _custom(content: bytes) -> dict[str, list[tuple[str, bytes]]]:
    """Returns the names and options of a file's custom operators, by signature."""
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(content, 0)
    codes = [(code.customCode or b"").decode() for code in model.operatorCodes]
    return {
        each.signatureKey.decode(): [
            (codes[op.opcodeIndex], bytes(op.customOptions))
            for op in model.subgraphs[each.subgraphIndex].operators
            if codes[op.opcodeIndex]
        ]
        for each in model.signatureDefs
    }


def _strings(options: bytes) -> list[bytes]:
    items = flexbuffers.GetRoot(options).AsVector
    assert all(items[index].IsString for index in range(2))
    return [bytes(flexbuffers.String(items[at]._Indirect(), items[at]._byte_width).Bytes) for at in range(2)]


@pytest.fixture(scope="module")
def written(tf: ModuleType, saved: Path) -> tuple[bytes, bytes]:
    """Returns the official converter's file of `saved`, and ours."""
    official = tf.lite.TFLiteConverter.from_saved_model(str(saved))
    official.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    return official.convert(), bytes(tfconvert.convert(saved, target=tfconvert.LiteRT(allow_flex=True)))


@pytest.mark.parametrize("name", MODELS)
def test_options_are_the_official_converters(written: tuple[bytes, bytes], name: str) -> None:
    want, got = (_custom(each)[name] for each in written)
    assert [code for code, _ in got] == [code for code, _ in want]
    assert f"Flex{name}" in dict(got)
    for (_, mine), (_, theirs) in zip(got, want, strict=True):
        op, proto = _strings(theirs)
        # Maps have no order in a proto, and the official converter's depends on the build.
        assert conversion.vector_of_strings(op, proto) == theirs
        node = pb.NodeDef.FromString(_strings(mine)[1])
        assert node == pb.NodeDef.FromString(proto)
        assert _strings(mine)[0] == op == node.op.encode()
        assert len(mine) == len(theirs)
        assert mine == conversion.encode(pb.NodeDef.FromString(proto))


@pytest.mark.parametrize("name", MODELS)
def test_tensorflow_runs_what_is_written(tf: ModuleType, saved: Path, name: str) -> None:
    function, inputs = MODELS[name](tf)
    content = bytes(tfconvert.convert(saved, signatures=name, target=tfconvert.LiteRT(allow_flex=True)))
    for want, got in zip(tf.nest.flatten(function(*inputs)), _run_nodes(tf, content, inputs), strict=True):
        np.testing.assert_array_equal(got, want.numpy())


def _run_nodes(tf: ModuleType, content: bytes, inputs: Sequence[Any]) -> list[Any]:
    """Runs a file of flex ops only as a graph of the nodes in its options."""
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(content, 0)
    (graph,) = model.subgraphs
    arguments = model.signatureDefs[0].inputs
    assert [entry.name.decode() for entry in arguments] == sorted(entry.name.decode() for entry in arguments)
    values = dict(zip((entry.tensorIndex for entry in arguments), inputs, strict=True))
    for at, tensor in enumerate(graph.tensors):
        data = model.buffers[tensor.buffer].data
        if data is not None:
            values[at] = _array(bytes(data), tensor.type, tensor.shape)
    for op in graph.operators:
        node = tf.compat.v1.NodeDef.FromString(_strings(bytes(op.customOptions))[1])
        node.name = "node"
        built = tf.compat.v1.GraphDef(node=[node])
        built.versions.producer = 2000
        with tf.Graph().as_default() as run:
            fed = [tf.constant(values[at]) for at in op.inputs]
            for index in range(len(fed)):
                built.node[0].input[index] = f"in{index}"
            tf.import_graph_def(built, {f"in{index}": each for index, each in enumerate(fed)}, name="")
            outputs = run.get_operation_by_name("node").outputs
            with tf.compat.v1.Session(graph=run) as session:
                values.update(zip(op.outputs, session.run(outputs), strict=True))
    results = {entry.name.decode(): values[entry.tensorIndex] for entry in model.signatureDefs[0].outputs}
    return [results[name] for name in sorted(results)]


def _array(data: bytes, kind: int, shape: Any) -> np.ndarray:
    if kind == 5:  # Strings: their count, their offsets, their bytes.
        count = struct.unpack_from("<i", data)[0]
        offsets = struct.unpack_from(f"<{count + 1}i", data, 4)
        items = [data[start:end] for start, end in pairwise(offsets)]
        return np.array(items, object).reshape(shape)
    dtype = {0: np.float32, 2: np.int32, 4: np.int64, 6: np.bool_}[kind]
    return np.frombuffer(data, dtype).reshape(shape)


@pytest.mark.parametrize("sizes", [(0, 0), (1, 3), (254, 256), (255, 255), (300, 2), (2, 65535), (70000, 65536)])
def test_strings_of_any_size(sizes: tuple[int, int]) -> None:
    texts = ["a" * sizes[0], "b" * sizes[1]]
    builder = flexbuffers.Builder()
    with builder.Vector():
        for text in texts:
            builder.String(text)
    assert conversion.vector_of_strings(*(text.encode() for text in texts)) == bytes(builder.Finish())


def _legalized(text: str, **options: Any) -> tuple[ModuleOp, list[Any]]:
    module = parse(text, with_relations=False)
    return module, list(Legalize(**options).apply(module).notes)


DET = """
func.func @main(%x: tensor<40x40x{T}>) -> tensor<{T}> {{
  %0 = "{op}"(%x) : (tensor<40x40x{T}>) -> tensor<{T}>
  func.return %0 : tensor<{T}>
}}
"""


def test_the_report_tells_what_the_app_needs() -> None:
    _, notes = _legalized(DET.format(op="tf.MatrixDeterminant", T="f32"), allow_flex=True)
    assert [(note.code, note.severity) for note in notes] == [("needs-flex", "warning"), ("flex-op", "note")]
    assert "FlexMatrixDeterminant" in notes[0].message
    assert "select-tf-ops" in notes[0].hint
    assert "only matrices of 1 to 32 rows" in notes[1].message


def test_flex_goes_before_custom_ops_and_after_builtins() -> None:
    ops = {
        name: _legalized(DET.format(op=name, T="f32"), allow_flex=True, allow_custom_ops=True)
        for name in ("tf.MatrixDeterminant", "tf.BesselJ0")
    }
    codes = [
        tfl.attribute(op, tfl.CUSTOM_CODE)
        for module, _ in ops.values()
        for op in module.walk()
        if op.name == "tfl.custom"
    ]
    assert codes == ["FlexMatrixDeterminant", "BesselJ0"]
    text = """
    func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = "tf.Relu"(%x) : (tensor<3xf32>) -> tensor<3xf32>
      func.return %0 : tensor<3xf32>
    }"""
    module, notes = _legalized(text, allow_flex=True)
    assert "tfl.relu" in str(module)
    assert notes == []


@pytest.mark.parametrize(
    ("op", "element", "reason"),
    [
        ("tf.BesselJ0", "f32", "the Flex delegate doesn't take the op"),
        ("tf.Identity", "!tf_type.qint8", "no .tflite file can have tensors of !tf_type.qint8"),
        ("tf.Identity", "!tf_type.resource", "the Flex delegate can't share a variable or a table with LiteRT"),
    ],
)
def test_what_can_not_be_one(op: str, element: str, reason: str) -> None:
    module = parse(DET.format(op=op, T=element), with_relations=False)
    found = next(each for each in module.walk() if each.name == op)
    assert isinstance(found, dialect.TFOp)
    assert conversion.why_not(found) == reason
    if element == "f32":
        with pytest.raises(tfconvert.ConversionError, match=reason):
            Legalize(allow_flex=True).apply(module)


def test_the_hint_says_that_flex_would_do() -> None:
    with pytest.raises(tfconvert.ConversionError) as caught:
        _legalized(DET.format(op="tf.MatrixDeterminant", T="f32"))
    assert "--allow-flex" in caught.value.advice[0]
    with pytest.raises(tfconvert.ConversionError) as caught:
        _legalized(DET.format(op="tf.BesselJ0", T="f32"))
    assert "--allow-flex" not in caught.value.advice[0]


@pytest.mark.parametrize("further", ["AcmeTokenize", "Acme*"])
def test_ops_of_the_users_delegate(further: str) -> None:
    text = """
    func.func @main(%x: tensor<3xf32>) -> tensor<3xi32> {
      %0 = "tf.AcmeTokenize"(%x) {N = 3 : i64, T = f32, device = "", fast = true, name = "a", rates = [0.5 : f32],
        shape = #tf_type.shape<2x?>, _private = 1 : i64} : (tensor<3xf32>) -> tensor<3xi32>
      func.return %0 : tensor<3xi32>
    }"""
    module, _ = _legalized(text, allow_flex=True, flex_ops=(further,))
    (op,) = (op for op in module.walk() if op.name == "tfl.custom")
    node = pb.NodeDef.FromString(_strings(tfl.attribute(op, tfl.CUSTOM_OPTION))[1])
    assert (node.op, list(node.input)) == ("AcmeTokenize", [""])
    assert {name: value.WhichOneof("value") for name, value in node.attr.items()} == {
        "N": "i",
        "T": "type",
        "fast": "b",
        "name": "s",
        "rates": "list",
        "shape": "shape",
    }
    assert (node.attr["T"].type, list(node.attr["rates"].list.f)) == (1, [0.5])
    assert [dim.size for dim in node.attr["shape"].shape.dim] == [2, -1]
    with pytest.raises(tfconvert.ConversionError, match="the Flex delegate doesn't take the op"):
        _legalized(text, allow_flex=True)


def test_the_command_names_ops_of_the_users_delegate(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("""
    func.func @main(%x: tensor<3xf32>) -> tensor<3xi32> {
      %0 = "tf.AcmeTokenize"(%x) {T = f32} : (tensor<3xf32>) -> tensor<3xi32>
      func.return %0 : tensor<3xi32>
    }""")
    command = [str(model), "-o", str(tmp_path / "model.tflite"), "--flex-op", "Other", "--flex-op", "Acme*"]
    done = CliRunner().invoke(main, [*command, "--allow-flex"])
    assert done.exit_code == 0, done.stderr
    assert "needs the Flex delegate (Select TF ops) for FlexAcmeTokenize" in done.stdout
    assert "must register" not in done.stdout
    done = CliRunner().invoke(main, command)
    assert (done.exit_code, "set allow_flex (--allow-flex), too" in done.stderr) == (2, True)


def test_lists_know_what_they_hold_by_their_type() -> None:
    text = """
    func.func @main(%s: tensor<1xi32>, %n: tensor<i32>) -> tensor<!tf_type.variant<tensor<4xf32>>> {
      %0 = "tf.TensorListReserve"(%s, %n)
        : (tensor<1xi32>, tensor<i32>) -> tensor<!tf_type.variant<tensor<4xf32>>>
      func.return %0 : tensor<!tf_type.variant<tensor<4xf32>>>
    }"""
    found = next(op for op in parse(text).walk() if op.name == "tf.TensorListReserve")
    assert isinstance(found, dialect.TFOp)
    node = node_def(found)
    assert (node.attr["element_dtype"].type, node.attr["shape_type"].type) == (1, 3)


def test_the_list_of_ops() -> None:
    names = (Path(conversion.__file__).parent / "ops.txt").read_text("ascii").split()
    assert names == sorted(set(names))
    unknown = {name for name in names if op_defs.lookup(name) is None}
    # TensorFlow Text's and SentencePiece's ops are in packages of their own.
    assert len(unknown) < 30
    assert all(
        "okeniz" in name
        or "iece" in name
        or "UTF8" in name
        or "W" in name
        or name in {"ConstrainedSequence", "MaxSpanningTree", "RegexSplitWithOffsets", "RougeL", "SentenceFragments"}
        for name in unknown
    )


def test_verification_declines(tf: ModuleType, tmp_path: Path) -> None:
    folder = _save(tf, tmp_path, {"Qr": MODELS["Qr"](tf)})
    report = tfconvert.convert(folder, verify=True, target=tfconvert.LiteRT(allow_flex=True)).report
    assert report.operators == {"FlexQr": 1}
    assert report.verification == ()
    assert [note.code for note in report.notes] == ["needs-flex", "flex-op", "not-verified"]


def test_calibration_says_what_it_can_not_run(tf: ModuleType, tmp_path: Path) -> None:
    folder = _save(tf, tmp_path, {"f": (lambda x: tf.linalg.det(x) + 1.0, [LARGE])})
    quantize = tfconvert.Quantize("int8", samples=[[LARGE]])
    with pytest.raises(tfconvert.ConversionError, match="can't be run: LiteRT's package has no kernel of Flex"):
        tfconvert.convert(folder, quantize=quantize, target=tfconvert.LiteRT(allow_flex=True))


@pytest.fixture(scope="module")
def table(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory of a model that counts words in a table: looks up, inserts, and looks up again."""
    module = tf.Module()
    module.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)

    def count(words: Any) -> Any:
        before = module.table.lookup(words)
        module.table.insert(words, before + 1)
        return {"after": module.table.lookup(words), "before": before}

    module.count = tf.function(count, input_signature=[tf.TensorSpec([2], tf.string)], autograph=False)
    folder = tmp_path_factory.mktemp("table")
    tf.saved_model.save(module, str(folder), signatures=module.count)
    return folder


def test_a_table_that_the_model_changes_is_in_flex_with_all_that_use_it(tf: ModuleType, table: Path) -> None:
    official = tf.lite.TFLiteConverter.from_saved_model(str(table))
    official.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    model = tfconvert.convert(table, target=tfconvert.LiteRT(allow_flex=True))
    want, got = (next(iter(_custom(each).values())) for each in (official.convert(), bytes(model)))
    assert [code for code, _ in got] == [
        "FlexMutableHashTableV2",
        "FlexLookupTableFindV2",
        "FlexLookupTableInsertV2",
        "FlexLookupTableFindV2",
    ]
    for (code, mine), (their_code, theirs) in zip(got, want, strict=True):
        nodes = [pb.NodeDef.FromString(_strings(each)[1]) for each in (mine, theirs)]
        for node in nodes:
            node.device = ""
            node.ClearField("experimental_debug_info")
        assert (code, nodes[0]) == (their_code, nodes[1])
    (told,) = (note for note in model.report.notes if note.op == "tf.MutableHashTableV2")
    assert told.severity == "warning"
    assert "the table is empty when the app starts" in told.message


def test_tensorflow_keeps_the_table_from_run_to_run(tf: ModuleType, table: Path) -> None:
    content = bytes(tfconvert.convert(table, target=tfconvert.LiteRT(allow_flex=True)))
    for run in range(3):
        found = _run_with_handles(tf, content, np.array([b"a", b"b"], object))
        assert {name: value.numpy().tolist() for name, value in found.items()} == {
            "before": [run - 1] * 2,
            "after": [run] * 2,
        }


def _run_with_handles(tf: ModuleType, content: bytes, words: np.ndarray) -> dict[str, Any]:
    """Runs a file of flex ops and additions, in the file's order; ops pass handles to each other."""
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(content, 0)
    (graph,), (signature,) = model.subgraphs, model.signatureDefs
    values = {graph.inputs[0]: tf.constant(words)}
    for at, tensor in enumerate(graph.tensors):
        data = model.buffers[tensor.buffer].data
        if data is not None:
            values[at] = tf.constant(_array(bytes(data), tensor.type, tensor.shape))
    for op in graph.operators:
        inputs = [values[at] for at in op.inputs]
        if op.customOptions is None:
            assert model.operatorCodes[op.opcodeIndex].builtinCode == schema.BuiltinOperator.ADD
            result = tf.add(*inputs)
        else:
            node = pb.NodeDef.FromString(_strings(bytes(op.customOptions))[1])
            # The others follow from the operands.
            given = {name: attr for name, attr in node.attr.items() if name not in ("Tin", "Tout")}
            arguments = {name: _attribute(tf, attr) for name, attr in given.items()}
            declared = op_defs.lookup(node.op)
            assert declared is not None
            names = [argument.name for argument in declared.input_arg]
            result = getattr(tf.raw_ops, node.op)(**dict(zip(names, inputs, strict=True)), **arguments)
        if len(op.outputs):
            values[op.outputs[0]] = result
    return {entry.name.decode(): values[entry.tensorIndex] for entry in signature.outputs}


def _attribute(tf: ModuleType, attr: pb.AttrValue) -> Any:
    kind = attr.WhichOneof("value")
    return tf.as_dtype(attr.type) if kind == "type" else getattr(attr, str(kind))


TABLE = """
func.func @main(%k: tensor<2xi64>, %n: tensor<i64>) -> tensor<2xi64> {
  %0 = "tf.MutableHashTableV2"() <{key_dtype = i64, value_dtype = i64, shared_name = "t"}>
      : () -> tensor<!tf_type.resource>
  "tf.OTHER"(%0, %k, %k) : (tensor<!tf_type.resource>, tensor<2xi64>, tensor<2xi64>) -> ()
  %1 = "tf.LookupTableFindV2"(%0, %k, %n) : (tensor<!tf_type.resource>, tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  func.return %1 : tensor<2xi64>
}
"""


def test_a_table_stays_if_one_of_its_users_can_not_be_a_flex_op() -> None:
    module, _ = _legalized(TABLE.replace("OTHER", "LookupTableInsertV2"), allow_flex=True)
    assert str(module).count("Flex") == 3
    with pytest.raises(tfconvert.ConversionError, match="can't share a variable or a table") as caught:
        _legalized(TABLE.replace("OTHER", "AcmeInsert"), allow_flex=True)
    assert {each.op for each in caught.value.diagnostics} >= {"tf.MutableHashTableV2", "tf.AcmeInsert"}


def test_the_hint_about_a_table_is_right() -> None:
    with pytest.raises(tfconvert.ConversionError) as caught:
        _legalized(TABLE.replace("OTHER", "LookupTableInsertV2"))
    assert "--allow-flex" in caught.value.advice[0]
    with pytest.raises(tfconvert.ConversionError) as caught:
        _legalized(TABLE.replace("OTHER", "AcmeInsert"))
    assert not any("--allow-flex" in each for each in caught.value.advice)
