"""The bundled op registry."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.light_tensorflow import LIGHT_TENSORFLOW
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated.tensorflow_pb2 import DT_FLOAT, OpDef, OpList


def _everything() -> list[OpDef]:
    return list(OpList.FromString(op_defs.PATH.read_bytes()).op)


def test_lookup_finds_arguments_and_attributes() -> None:
    conv = op_defs.lookup("Conv2D")
    assert conv is not None
    assert [arg.name for arg in conv.input_arg] == ["input", "filter"]
    assert [arg.name for arg in conv.output_arg] == ["output"]
    attrs = {attr.name: attr for attr in conv.attr}
    assert list(attrs["dilations"].default_value.list.i) == [1, 1, 1, 1]
    assert DT_FLOAT in attrs["T"].allowed_values.list.type
    assert attrs["padding"].allowed_values.list.s[:2] == [b"SAME", b"VALID"]


def test_lookup_knows_statefulness() -> None:
    stateful = {name: definition.is_stateful for name in ("VarHandleOp", "Add") if (definition := op_defs.lookup(name))}
    assert stateful == {"VarHandleOp": True, "Add": False}


def test_lookup_of_an_unknown_op() -> None:
    assert op_defs.lookup("NoSuchOp") is None
    assert op_defs.lookup("") is None


def test_lookup_returns_one_object() -> None:
    assert op_defs.lookup("Relu") is op_defs.lookup("Relu")


def test_every_op_is_found_as_the_whole_file_has_it() -> None:
    everything = _everything()
    assert len(everything) > 1500
    assert [op.name for op in everything] == op_defs.names()
    for op in everything:
        assert op_defs.lookup(op.name) == op


def test_names_fit_the_length_byte_that_the_index_relies_on() -> None:
    assert max(len(op.name.encode()) for op in _everything()) < 128


def test_no_descriptions() -> None:
    for op in _everything():
        texts = [op.summary, op.description, op.deprecation.explanation]
        texts += [arg.description for arg in (*op.input_arg, *op.output_arg)] + [attr.description for attr in op.attr]
        assert not any(texts), op.name


def test_registry_is_the_installed_tensorflows() -> None:
    pytest.importorskip("tensorflow")
    # In a process of its own: here, other tests may have registered ops of theirs. What is left out
    # of TensorFlow loads one more library of ops.
    script = f"""{LIGHT_TENSORFLOW}
from tensorflow.python.client import pywrap_tf_session
from tfconvert.schema.tensorflow import make_op_defs
(folder,) = spec.submodule_search_locations
pywrap_tf_session.TF_LoadLibrary(f"{{folder}}/lite/experimental/microfrontend/python/ops/_audio_microfrontend_op.so")
sys.stdout.buffer.write(make_op_defs.registered().SerializeToString(deterministic=True))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=120)
    assert done.stdout == op_defs.PATH.read_bytes()
