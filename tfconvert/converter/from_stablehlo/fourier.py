"""Fourier transforms: those of TensorFlow."""

from __future__ import annotations

import numpy as np

from tfconvert.converter.from_stablehlo.raised_op import RaisedOp, Rows
from tfconvert.converter.ir.tensors import EmittedTensor


def _fft(raised: RaisedOp) -> EmittedTensor:
    (x,) = raised.operands
    kind, lengths = raised.text("fft_type"), list(raised.ints("fft_length"))
    name = kind if len(lengths) == 1 else f"{kind}{len(lengths)}D"
    if kind in ("FFT", "IFFT"):
        return x.op(name, x)  # type: ignore[no-any-return]
    length = np.array(lengths, np.int32)
    if kind == "RFFT":
        return x.op(name, x, length, Tcomplex=raised.dtype())  # type: ignore[no-any-return]
    return x.op(name, x, length, Treal=raised.dtype())  # type: ignore[no-any-return]


ROWS: Rows = {"fft": _fft}
