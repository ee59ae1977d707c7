"""Control flow as TensorFlow 1 builds it: Switch, Merge, and frames of loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def control_flow_v1(tf: ModuleType) -> Iterator[None]:
    """Has TensorFlow build conditions and loops in their V1 form, and then as before."""
    v1 = tf.compat.v1
    was_v2 = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    try:
        yield
    finally:
        if was_v2:
            v1.enable_control_flow_v2()
