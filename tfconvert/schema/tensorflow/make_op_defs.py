"""Generates `op_defs.binpb` from the installed TensorFlow: every op it registers, without descriptions.

Run as `python -m tfconvert.schema.tensorflow.make_op_defs`, with TensorFlow installed, when a new TensorFlow brings new
ops. The file is a plain serialised `OpList`, sorted by name, so equal registries yield equal bytes.
"""

from __future__ import annotations

from tensorflow.python.client import pywrap_tf_session

from tfconvert.schema.tensorflow.generated.tensorflow_pb2 import OpList
from tfconvert.schema.tensorflow.op_defs import PATH


def registered() -> OpList:
    """Returns all ops that the installed TensorFlow has registered, sorted by name and without prose."""
    data: bytes = pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    ops = OpList.FromString(data).op
    for op in ops:
        op.ClearField("summary")
        op.ClearField("description")
        if op.HasField("deprecation"):
            op.deprecation.ClearField("explanation")
        for part in (*op.input_arg, *op.output_arg, *op.attr):
            part.ClearField("description")
    ordered = sorted(ops, key=lambda op: op.name)
    return OpList(op=ordered)


def main() -> None:
    """Writes the file."""
    PATH.write_bytes(registered().SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
