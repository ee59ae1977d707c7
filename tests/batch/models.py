"""Small models for batches, as MLIR text: they need no TensorFlow to be made."""

from __future__ import annotations

from pathlib import Path

RELU = """
func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32>
    attributes {tf.entry_function = {inputs = "x", outputs = "y"}} {
  %0 = "tf.Relu"(%x) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %0 : tensor<?x2xf32>
}
"""
UNKNOWN = RELU.replace("Relu", "Nonsense")

ENDLESS = "import time\n\nwhile True:\n    time.sleep(1)\n"
"""Rules that are never read to their end: a job with them has to be ended from outside."""


def write(folder: Path, name: str, text: str | None = None) -> Path:
    """Writes a model, by default one that converts, and returns its path."""
    path = folder / f"{name}.mlir"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(RELU if text is None else text)
    return path
