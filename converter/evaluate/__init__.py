"""Reference semantics of TensorFlow's ops in numpy: kernels by topic, and an executor of functions (design §11)."""

from __future__ import annotations

from converter.evaluate.call import Call, Kernel
from converter.evaluate.executor import call_of, run
from converter.evaluate.kernels import evaluate, kernel

__all__ = ["Call", "Kernel", "call_of", "evaluate", "kernel", "run"]
