"""Reads modules in the project's dialects, with the constants and attributes that TensorFlow's MLIR writes.

    module = IRParser(text, "model.mlir").parse_module()

When the last op is read, the OpDef attributes of `tf` ops are put where ours have them (`tf.normalize`), so are the
options of `tfl` ops (`tfl_spelling.normalize`), and constants of a resource section get into their places.
"""

from __future__ import annotations

from tfconvert.schema.dialects import dense_parsing, tf, tfl, tfl_spelling
from tfconvert.schema.dialects.context import DIALECTS
from tfconvert.schema.dialects.tensor_data import DenseResourceAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.parser import Parser


class IRParser(Parser):
    """Parses modules in the project's dialects.

    Args:
        text: The text.
        filename: The file's name, for messages.
        first_line: The number of the text's first line, if it is a part of a file.
        locate: Whether an op without a location gets its place in the text.
    """

    def __init__(self, text: str, filename: str = "<unknown>", first_line: int = 1, *, locate: bool = False) -> None:
        super().__init__(DIALECTS, text, filename, first_line, locate=locate)

    def parse_module(self) -> ModuleOp:
        module = super().parse_module()
        beside: list[tfl.TFLOp] = []
        for op in module.walk():
            if isinstance(op, tf.TFOp):
                tf.normalize(op)
            elif isinstance(op, tfl.TFLOp):
                tfl_spelling.normalize(op)
                if op.op_name == tfl.EXTERNAL_CONST:
                    beside.append(op)
            for name, value in op.properties.items():
                if isinstance(value, DenseResourceAttr) and (digits := self.resources.get(value.handle)):
                    op.properties[name] = dense_parsing.resource(self, value, digits)
        tfl_spelling.collect_external_buffers(module, beside)
        return module
