"""TensorFlow's own engine for StableHLO, as a judge of our texts: XLA compiles them for the sizes of the inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_VERSION = 9
"""The version of the op that runs texts."""


def artifact(text: str) -> bytes:
    """Returns a text in the portable form that engines exchange."""
    from tensorflow.compiler.mlir.stablehlo import stablehlo

    found: bytes = stablehlo.serialize_portable_artifact_str(text, stablehlo.get_current_version())
    return found


class Program:
    """A text that is ready to run.

    Args:
        text: The text, or the artifact that it was written as.
        results: The types and shapes of the results, by TensorFlow's types, dynamic sizes as `None`.
    """

    def __init__(self, text: str | bytes, results: Sequence[tuple[object, Sequence[int | None]]]) -> None:
        self._artifact = artifact(text) if isinstance(text, str) else text
        self._results = results

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the results of `main`."""
        import tensorflow as tf
        from tensorflow.compiler.tf2xla.python import xla

        def call(*arguments: object) -> object:
            return xla.call_module(
                list(arguments),
                version=_VERSION,
                module=self._artifact,
                Tout=[kind for kind, _ in self._results],
                Sout=[tf.TensorShape(shape) for _, shape in self._results],
                platforms=("CPU",),
            )

        compiled = tf.function(call, jit_compile=True, autograph=False)
        return [each.numpy() for each in compiled(*[tf.constant(each) for each in inputs])]
