"""Tables in LiteRT against TensorFlow: their kinds, vocabulary files, and the preprocessing layers that use them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tfconvert.schema.diagnostics import ConversionError

Array = np.ndarray[Any, np.dtype[Any]]
Functions = Mapping[str, Any]

WORDS = np.array([b"a", b"", b"c d"], object)


def save(tf: ModuleType, folder: Path, functions: Functions, *tracked: Any) -> None:
    """Saves functions, each as a signature, and the tables that they use."""
    module = tf.Module()
    module.tracked = tracked
    tf.saved_model.save(module, str(folder), signatures=dict(functions))


Check = Callable[..., tfconvert.Model]


@pytest.fixture
def check(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> Check:
    """Returns an assertion that functions of `x` return the same in LiteRT for each of some operands."""

    def run(functions: Functions, operands: Sequence[Array], *tracked: Any) -> tfconvert.Model:
        save(tf, tmp_path / "model", functions, *tracked)
        model = tfconvert.convert(tmp_path / "model")
        for key, function in functions.items():
            for x in operands:
                expected = function(tf.constant(x))
                results = run_tflite(bytes(model), {"x": x}, signature=key)
                for got, name in zip(results, sorted(expected), strict=True):
                    np.testing.assert_array_equal(got, expected[name].numpy())
        return model

    return run


def spec(tf: ModuleType, keys: Array, *shape: int | None) -> Any:
    return [tf.TensorSpec(shape or (None,), tf.string if keys.dtype == object else keys.dtype, name="x")]


def static_table(tf: ModuleType, keys: Any, values: Any, default: Any) -> Any:
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(keys), tf.constant(values))
    return tf.lookup.StaticHashTable(initializer, default)


VALUES = {
    "strings": (WORDS, b"none"),
    "doubles": (np.array([0.1, -2e300, 3]), 7.5),
    "floats": (np.array([0.5, 2, 3], np.float32), -1.0),
    "integers": (np.array([1, 2, 2**40]), -1),
    "halves": (np.array([1, 2, 3], np.int32), -1),
}
KEYS = {
    "strings": WORDS,
    "close": np.array([5, -6, 7], np.int32),
    "far": np.array([5, -6, 2**40]),
    "last": np.array([2**63 - 1, 5, -(2**63)]),
    "lasting": np.array([2**63 - 1, 2**63 - 2, 2**63 - 3]),
    "one": np.array([1]),
}


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        ("strings", "doubles"),
        ("strings", "halves"),
        *[("close", kind) for kind in VALUES if kind != "integers"],
        *[("far", kind) for kind in VALUES],
        ("last", "floats"),
        ("lasting", "strings"),
        ("one", "integers"),
    ],
)
def test_kinds_of_tables(tf: ModuleType, check: Check, keys: str, values: str) -> None:
    table = static_table(tf, KEYS[keys], VALUES[values][0][: len(KEYS[keys])], VALUES[values][1])
    find = tf.function(lambda x: {"y": table.lookup(x)}, input_signature=spec(tf, KEYS[keys]))
    other = np.array([b"zz"], object) if keys == "strings" else np.array([3], KEYS[keys].dtype)
    limits = [] if keys == "strings" else [np.iinfo(other.dtype).min, np.iinfo(other.dtype).max]
    some = np.concatenate([KEYS[keys][::-1], other, np.array(limits, other.dtype)])
    model = check({"find": find}, [some, some[:1]], table)
    assert ("HASHTABLE" not in model.report.operators) == (keys in ("close", "one"))


def test_signatures_branches_and_loops_share_a_table(tf: ModuleType, check: Check) -> None:
    table = static_table(tf, KEYS["far"], VALUES["floats"][0], -1.0)

    def total(x: Any) -> Any:
        result = tf.zeros([])
        for key in x:
            result += table.lookup(key)
        return {"y": result, "z": tf.cond(result > 2, lambda: table.lookup(x), lambda: -table.lookup(x))}

    signature = spec(tf, KEYS["far"])
    functions = {
        "find": tf.function(lambda x: {"y": table.lookup(x), "size": table.size()}, input_signature=signature),
        "total": tf.function(total, input_signature=signature),
    }
    model = check(functions, [np.array([5, 7, 2**40]), np.array([5])], table)
    assert model.report.operators["HASHTABLE_IMPORT"] == 2


def test_passes_keep_what_loops_over_strings_look_up(tf: ModuleType, tmp_path: Path) -> None:
    table = static_table(tf, WORDS, VALUES["floats"][0], -1.0)
    each = tf.function(
        lambda x: {"y": tf.map_fn(table.lookup, x, fn_output_signature=tf.float32)}, input_signature=spec(tf, WORDS, 3)
    )
    save(tf, tmp_path, {"each": each}, table)
    model = tfconvert.convert(tmp_path, check_passes=True)
    assert not [note for note in model.report.notes if "lower-tables" in note.message]


def test_a_table_tells_all_that_it_holds(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    table = static_table(tf, [5, 5, -6], [1, 1, 2], 0)
    export = tf.function(lambda x: dict(zip("kv", table.export(), strict=True)), input_signature=spec(tf, KEYS["far"]))
    save(tf, tmp_path, {"export": export}, table)
    keys, values = run_tflite(bytes(tfconvert.convert(tmp_path)), {"x": np.zeros(1, np.int64)}, signature="export")
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == {5: 1, -6: 2}
    assert len(keys) == 2


def test_the_oldest_tables(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> None:
    v1, raw = tf.compat.v1, tf.raw_ops
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.string, [None], "x")
        table = raw.HashTable(key_dtype=tf.string, value_dtype=tf.int64, shared_name="words")
        fill = raw.InitializeTable(table_handle=table, keys=["a", "b"], values=np.array([1, 2]))
        y = raw.LookupTableFind(table_handle=table, keys=x, default_value=np.array(-1))
        v1.saved_model.simple_save(session, str(tmp_path), {"x": x}, {"y": y}, legacy_init_op=fill)
    (found,) = run_tflite(bytes(tfconvert.convert(tmp_path)), [np.array([b"b", b"q"], object)])
    np.testing.assert_array_equal(found, [2, -1])


def test_joined_strings_are_looked_up_apart(tf: ModuleType, check: Check) -> None:
    table = static_table(tf, WORDS, VALUES["integers"][0], -1)

    def find(x: Any) -> Any:
        both = tf.concat([x, ["c d"]], 0)
        pairs = tf.stack([x, x[::-1]], 1)
        return {"both": table.lookup(both), "pairs": table.lookup(pairs), "same": tf.equal(pairs, "a")}

    check({"find": tf.function(find, input_signature=spec(tf, WORDS))}, [WORDS, WORDS[:1]], table)


@pytest.mark.parametrize("keys", [WORDS, np.array([5, -6, 7])], ids=["strings", "integers"])
def test_one_bucket_holds_all_other_words(tf: ModuleType, check: Check, keys: Array) -> None:
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(keys), tf.constant([0, 1, 2], tf.int64))
    table = tf.lookup.StaticVocabularyTable(initializer, 1)
    find = tf.function(lambda x: {"y": table.lookup(x), "n": table.size()}, input_signature=spec(tf, keys))
    check({"find": find}, [np.concatenate([keys, keys[:1] * 2 + keys[1:2]])], table)


def refusal(folder: Path) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(folder)
    return caught.value


def test_unsupported_table_ops_come_with_advice(tf: ModuleType, tmp_path: Path) -> None:
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    numbers = tf.lookup.KeyValueTensorInitializer(tf.constant(WORDS), tf.constant([0, 1, 2], tf.int64))
    hashed = tf.lookup.StaticVocabularyTable(numbers, 2)
    find = tf.function(lambda x: {"y": table.lookup(x) + hashed.lookup(x)}, input_signature=spec(tf, WORDS))
    save(tf, tmp_path, {"find": find}, table, hashed)
    hints = {each.op: each.hint for each in refusal(tmp_path).diagnostics}
    assert "use a tf.lookup.StaticHashTable" in hints["tf.MutableHashTableV2"]
    assert "split, clean and hash text before" in hints["tf.StringToHashBucketFast"]


@pytest.fixture
def vocabulary(tf: ModuleType, tmp_path: Path) -> Path:
    """Returns the vocabulary file of a model that is in the folder `model` beside it."""
    file = tmp_path / "wörter #1 %20'.txt"
    file.write_bytes("a\nü b\nlast\r\n".encode())
    words = tf.lookup.TextFileInitializer(
        str(file), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    table = tf.lookup.StaticHashTable(words, -1)
    find = tf.function(lambda x: {"y": table.lookup(x)}, input_signature=spec(tf, WORDS))
    save(tf, tmp_path / "model", {"find": find}, table)
    return tmp_path / "model" / "assets" / file.name


def test_a_vocabulary_file_may_have_any_name(vocabulary: Path, run_tflite: RunTFLite) -> None:
    model = tfconvert.convert(vocabulary.parent.parent)
    x = np.array(["last", "ü b", "?", "a"], object)
    (found,) = run_tflite(bytes(model), {"x": x}, signature="find")
    np.testing.assert_array_equal(found, [2, 1, -1, 0])


def _words(tf: ModuleType, folder: Path) -> Any:
    """Returns what fills a table from a file."""
    file = folder / "words.txt"
    file.write_text("one\ntwo\n")
    index = tf.lookup.TextFileIndex
    return tf.lookup.TextFileInitializer(str(file), tf.int64, index.LINE_NUMBER, tf.string, index.WHOLE_LINE)


def _two_tables(tf: ModuleType, folder: Path, **settings: Any) -> Any:
    """Returns a module with one table in it and another, filled from a file, in a module of that."""
    module = tf.Module()
    module.inner = tf.Module()
    numbers = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([1, 0], tf.int64))
    module.inner.numbers = tf.lookup.StaticHashTable(numbers, -1, **settings)
    module.words = tf.lookup.StaticHashTable(_words(tf, folder), "none", **settings)
    both = lambda x: {"y": module.words.lookup(module.inner.numbers.lookup(x)), "n": module.words.size()}  # noqa: E731
    module.serve = tf.function(both, input_signature=spec(tf, WORDS))
    return module


def _vocabulary_table(tf: ModuleType, folder: Path) -> Any:
    module = tf.Module()
    numbers = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "c d"]), tf.constant([0, 1], tf.int64))
    module.table = tf.lookup.StaticVocabularyTable(numbers, 1)
    module.serve = tf.function(lambda x: {"y": module.table.lookup(x)}, input_signature=spec(tf, WORDS))
    return module


def _keras_layer(tf: ModuleType, folder: Path) -> Any:
    export("keras", lookup("StringLookup"), WORDS[:, None], folder / "keras")
    return tf.saved_model.load(str(folder / "keras"))


def _version_1(tf: ModuleType, folder: Path) -> Any:
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.string, [None], "x")
        table = static_table(tf, ["a", "c d"], [7, 8], -1)
        y, init = table.lookup(x), v1.tables_initializer()
        session.run(init)
        v1.saved_model.simple_save(session, str(folder / "v1"), {"x": x}, {"y": y}, legacy_init_op=init)
    return tf.saved_model.load(str(folder / "v1"))


LOADED: dict[str, Callable[[ModuleType, Path], Any]] = {
    "two tables": _two_tables,
    "anonymous": lambda tf, folder: _two_tables(tf, folder, experimental_is_anonymous=True),
    "vocabulary": _vocabulary_table,
    "layer of Keras": _keras_layer,
    "TensorFlow 1": _version_1,
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", LOADED)
def test_tables_of_models_that_were_loaded(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path, kind: str) -> None:
    model = LOADED[kind](tf, tmp_path)
    x = WORDS[:, None] if kind == "layer of Keras" else WORDS
    for number in range(3):
        folder = str(tmp_path / f"saved-{number}")
        serve = getattr(model, "signatures", {}).get("serving_default") or model.serve
        tf.saved_model.save(model, folder, signatures=serve)
        model = tf.saved_model.load(folder)
        serve = model.signatures["serving_default"]
        (name,) = serve.structured_input_signature[1]
        expected = serve(**{name: tf.constant(x)})
        for source in (folder, model):
            found = run_tflite(bytes(tfconvert.convert(source)), {name: x}, signature="serving_default")
            for got, key in zip(found, sorted(expected), strict=True):
                np.testing.assert_array_equal(got, expected[key].numpy())


def test_the_official_class_is_given_the_owner_of_a_table(
    tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path
) -> None:
    module = _vocabulary_table(tf, tmp_path)
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=module.serve)
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    for function, owner in (
        (module.serve.get_concrete_function(), module),
        (loaded.signatures["serving_default"], loaded),
    ):
        converter = tfconvert.TFLiteConverter.from_concrete_functions([function], owner)
        (found,) = run_tflite(converter.convert(), {"x": WORDS}, signature="serving_default")
        np.testing.assert_array_equal(found, module.serve(tf.constant(WORDS))["y"].numpy())


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"a\nb\na\n", "ambiguous-key"), (b"", "bad-vocabulary"), (b"a\n\n", "bad-vocabulary"), (None, "unreadable-file")],
)
def test_a_vocabulary_that_tensorflow_would_not_load_is_an_error(
    vocabulary: Path, content: bytes | None, code: str
) -> None:
    vocabulary.unlink()
    if content is not None:
        vocabulary.write_bytes(content)
    problem = refusal(vocabulary.parent.parent).diagnostics[0]
    assert problem.code == code
    assert "InitializeTable" in problem.op


def lookup(kind: str, **settings: Any) -> Callable[[Any], Any]:
    def build(layers: Any) -> Any:
        words: Any = ["a", "b b", "ü"] if kind == "StringLookup" else [5, 9, 1000]
        return getattr(layers, kind)(vocabulary=words, **settings)

    return build


def layer(kind: str, **settings: Any) -> Callable[[Any], Any]:
    return lambda layers: getattr(layers, kind)(**settings)


TEXT = np.array([[b"a", "ü".encode(), b"zz"], [b"", b"b b", b"a"]], object)
NUMBERS = np.array([[5, 9, 3], [0, 5, 5]])
FLOATS = np.array([[0.5, -1, 3], [7, 8, 1e3]], np.float32)
LAYERS = {
    **{f"string-{mode}": (lookup("StringLookup", output_mode=mode), TEXT) for mode in ("int", "multi_hot", "count")},
    "string-tf-idf": (lookup("StringLookup", output_mode="tf_idf", idf_weights=[0.5, 2, 1]), TEXT),
    "string-one-hot": (lookup("StringLookup", output_mode="one_hot"), TEXT[:, :1]),
    "string-mask": (lookup("StringLookup", mask_token="", num_oov_indices=1), TEXT),
    "string-no-oov": (lookup("StringLookup", num_oov_indices=0), TEXT[:, :1][:1]),
    "string-inverse": (lookup("StringLookup", invert=True, mask_token=""), NUMBERS),
    "integer-2-oov": (lookup("IntegerLookup", num_oov_indices=2, output_mode="multi_hot"), NUMBERS),
    "integer-mask": (lookup("IntegerLookup", mask_token=0), NUMBERS),
    "integer-inverse": (lookup("IntegerLookup", invert=True), NUMBERS),
    "encode": (layer("CategoryEncoding", num_tokens=12, output_mode="count"), NUMBERS),
    "encode-hot": (layer("CategoryEncoding", num_tokens=12), NUMBERS),
    "discrete": (layer("Discretization", bin_boundaries=[-0.5, 0.5, 7.0]), FLOATS),
    "discrete-hot": (layer("Discretization", bin_boundaries=[0.5], output_mode="multi_hot"), FLOATS),
    "hash-to-one": (layer("Hashing", num_bins=1), TEXT),
    "tokens": (
        layer("TextVectorization", standardize=None, split=None, vocabulary=["a", "b b"], output_sequence_length=5),
        TEXT[:, :1],
    ),
}


def export(package: str, make: Callable[[Any], Any], x: Array, folder: Path) -> Any:
    """Saves a model of one layer, its batch open."""
    keras = importlib.import_module(package)
    inputs = keras.Input(x.shape[1:], dtype="string" if x.dtype == object else x.dtype.name)
    network = keras.Model(inputs, make(keras.layers)(inputs))
    network.export(str(folder), **({"verbose": False} if package == "keras" else {}))
    return network


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
@pytest.mark.parametrize("name", LAYERS)
def test_preprocessing_layers(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path, package: str, name: str) -> None:
    make, x = LAYERS[name]
    network = export(package, make, x, tmp_path)
    (got,) = run_tflite(bytes(tfconvert.convert(tmp_path)), [x])
    np.testing.assert_array_equal(got, np.asarray(network(tf.constant(x))))


@pytest.mark.parametrize("buckets", [0, 1])
def test_feature_columns(tf: ModuleType, check: Check, buckets: int) -> None:
    words = tf.feature_column.categorical_column_with_vocabulary_list("x", ["a", "b b"], num_oov_buckets=buckets)
    columns = importlib.import_module("tf_keras").layers.DenseFeatures([tf.feature_column.indicator_column(words)])
    columns({"x": tf.constant(TEXT)})
    signature = [tf.TensorSpec([None, 3], tf.string, name="x")]
    run = tf.function(lambda x: {"y": columns({"x": x})}, input_signature=signature)
    check({"run": run}, [TEXT, TEXT[:1]], columns)


def test_layers_that_look_into_text_are_refused_op_by_op(tf: ModuleType, tmp_path: Path) -> None:
    export("keras", layer("TextVectorization", vocabulary=["a"]), TEXT[:, :1], tmp_path)
    found = {each.op: each for each in refusal(tmp_path).diagnostics}
    assert found.keys() == {"tf.StringLower", "tf.StaticRegexReplace", "tf.StringSplitV2"}
    assert "split, clean and hash text before" in found["tf.StringSplitV2"].hint
    assert all("text_vectorization" in each.node for each in found.values())
