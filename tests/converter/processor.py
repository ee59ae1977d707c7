"""Operations that TensorFlow can compute only on some processors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest


@contextmanager
def skipped_without_kernel(tf: ModuleType) -> Iterator[None]:
    """Skips a test where TensorFlow has no kernel: dilated depthwise convolutions need one of oneDNN's."""
    try:
        yield
    except tf.errors.UnimplementedError as problem:
        pytest.skip(f"TensorFlow has no kernel for this on this processor: {problem.message[:100]}")
