"""From the official converter's attributes to the settings of flex ops."""

from __future__ import annotations

from typing import Any

from tfconvert.compat.quantization import FLEX, names, supported_ops
from tfconvert.compat.row import Mapped, Values
from tfconvert.schema.diagnostics import NOTE, Diagnostic

_USERS = "target_spec.experimental_select_user_tf_ops"
_ALL = "_experimental_allow_all_select_tf_ops"

_BUILTINS_TOO = Diagnostic(
    "builtins-too",
    "target_spec.supported_ops has SELECT_TF_OPS only; builtins are written nevertheless where there are any: every "
    "runtime has them, and they are faster",
    severity=NOTE,
)


def flex(values: Values) -> Mapped:
    """Maps what decides about ops that TensorFlow's own kernels compute.

    Raises:
        ConversionError: A value isn't known (`wrong-option`).
    """
    ops = supported_ops(values)
    further = sorted(names(_USERS, values[_USERS]))
    if FLEX not in ops:
        return Mapped()
    arguments: dict[str, Any] = {"allow_flex": True}
    if values[_ALL]:
        arguments["flex_ops"] = ("*",)
    elif further:
        arguments["flex_ops"] = tuple(further)
    return Mapped(arguments, (_BUILTINS_TOO,) if ops == {FLEX} else ())
