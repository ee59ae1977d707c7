"""Reference semantics of TensorFlow's ops in numpy: kernels by topic, and constant folding.

Independent of the executor: constant folding, which every conversion does, loads kernels only.
"""

from __future__ import annotations

from tfconvert.ops.kernels.call import Call, Kernel
from tfconvert.ops.kernels.op_call import call_of
from tfconvert.ops.kernels.registry import evaluate, kernel

__all__ = ["Call", "Kernel", "call_of", "evaluate", "kernel"]
