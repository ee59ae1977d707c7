"""tfconvert: TensorFlow models to LiteRT, without TensorFlow.

    import tfconvert

    model = tfconvert.convert("saved_model_dir")
    model.save("model.tflite")

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tfconvert.composites as composites
    import tfconvert.patterns as patterns
    from tfconvert.converter.api import Model, convert
    from tfconvert.converter.quantization import Quantize
    from tfconvert.schema.diagnostics import ConversionError, Diagnostic

__version__ = "0.1.0"

__all__ = ["ConversionError", "Diagnostic", "Model", "Quantize", "__version__", "composites", "convert", "patterns"]

_HOMES = {
    "ConversionError": "tfconvert.schema.diagnostics",
    "Diagnostic": "tfconvert.schema.diagnostics",
    "Model": "tfconvert.converter.api",
    "Quantize": "tfconvert.converter.quantization",
    "composites": "tfconvert.composites",
    "convert": "tfconvert.converter.api",
    "patterns": "tfconvert.patterns",
}
_MODULES = frozenset(("composites", "patterns"))
"""Names that represent a whole module."""


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tfconvert' has no attribute {name!r}")
    from importlib import import_module

    value = import_module(home) if name in _MODULES else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
