"""Files written by hand, table by table, and the round trip that all files must survive."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

from tests.importers.tflite.meaning import meaning
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.printing import print_module
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER
from tfconvert.schema.tflite.tables import TFLITE
from tfconvert.schema.tflite.writer import encode

Tree = dict[str, Any]
File = Callable[..., bytes]
RoundTrip = Callable[[bytes], ModuleOp]


def text(module: ModuleOp) -> str:
    """Returns a module's whole text."""
    stream = io.StringIO()
    print_module(module, stream, elide=None, locations=True)
    return stream.getvalue()


def build_file(
    tensors: Sequence[Tree],
    operators: Sequence[Tree],
    codes: Sequence[Any],
    inputs: Sequence[int] = (0,),
    outputs: Sequence[int] = (1,),
    buffers: Sequence[bytes] = (),
    **model: Any,
) -> bytes:
    """Returns a file of one subgraph, or of more if the fields of `Model` have them.

    Args:
        tensors: Fields of the tensors; by default `FLOAT32`, of shape `[2]`, and named by its index.
        operators: Fields of the operators.
        codes: Names of builtin operators, or fields of `OperatorCode`.
        inputs: Indices of the subgraph's input tensors.
        outputs: Indices of the tensors that it returns.
        buffers: Contents of the buffers from the second on.
        model: Further fields of `Model`.
    """
    subgraph = {
        "tensors": [{"shape": (2,), "type": "FLOAT32", "name": f"t{i}", **item} for i, item in enumerate(tensors)],
        "inputs": tuple(inputs),
        "outputs": tuple(outputs),
        "operators": list(operators),
        "name": "main",
    }
    tree = {
        "version": 3,
        "operator_codes": [{"builtin_code": code} if isinstance(code, str) else code for code in codes],
        "subgraphs": [subgraph],
        "buffers": [{}, *({"data": content} for content in buffers)],
    }
    return bytes(encode(TFLITE, {**tree, **model}, TFLITE_IDENTIFIER).data)


def through(content: bytes) -> ModuleOp:
    """Imports a file; asserts that exporting it, also from its text, loses nothing."""
    module = import_tflite(content)
    verify(module, with_relations=False)
    again = export(module).to_bytes()
    assert meaning(again) == meaning(content)
    written = text(module)
    assert text(import_tflite(again)) == written
    parsed = IRParser(written).parse_module()
    verify(parsed, with_relations=False)
    assert meaning(export(parsed).to_bytes()) == meaning(content)
    return module
