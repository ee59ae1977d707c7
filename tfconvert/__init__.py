"""tfconvert: TensorFlow models to LiteRT, without TensorFlow.

    import tfconvert

    model = tfconvert.convert("saved_model_dir")
    model.save("model.tflite")

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tfconvert.client as client
    import tfconvert.compat as compat
    import tfconvert.composites as composites
    import tfconvert.experimental as experimental
    import tfconvert.patterns as patterns
    from tfconvert.converter.api import Model, convert
    from tfconvert.converter.client.async_client import AsyncClient
    from tfconvert.converter.client.client import Client
    from tfconvert.converter.compat.enumerators import OpsSet, Optimize
    from tfconvert.converter.compat.interpreter import Interpreter
    from tfconvert.converter.compat.target import RepresentativeDataset, TargetSpec
    from tfconvert.converter.compat.tflite_converter import TFLiteConverter
    from tfconvert.converter.inspection.op_support import supported_ops
    from tfconvert.converter.iree.runtime import Program, load
    from tfconvert.converter.iree_options import IreeOptions
    from tfconvert.converter.quantization import Quantize
    from tfconvert.converter.verify_options import Verify
    from tfconvert.schema.diagnostics import ConversionError, Diagnostic
    from tfconvert.schema.limits import Limits

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "Client",
    "ConversionError",
    "Diagnostic",
    "Interpreter",
    "IreeOptions",
    "Limits",
    "Model",
    "OpsSet",
    "Optimize",
    "Program",
    "Quantize",
    "RepresentativeDataset",
    "TFLiteConverter",
    "TargetSpec",
    "Verify",
    "__version__",
    "client",
    "compat",
    "composites",
    "convert",
    "experimental",
    "load",
    "patterns",
    "supported_ops",
]

_HOMES = {
    "AsyncClient": "tfconvert.converter.client.async_client",
    "Client": "tfconvert.converter.client.client",
    "ConversionError": "tfconvert.schema.diagnostics",
    "Diagnostic": "tfconvert.schema.diagnostics",
    "Interpreter": "tfconvert.converter.compat.interpreter",
    "IreeOptions": "tfconvert.converter.iree_options",
    "Limits": "tfconvert.schema.limits",
    "Model": "tfconvert.converter.api",
    "OpsSet": "tfconvert.converter.compat.enumerators",
    "Optimize": "tfconvert.converter.compat.enumerators",
    "Program": "tfconvert.converter.iree.runtime",
    "Quantize": "tfconvert.converter.quantization",
    "RepresentativeDataset": "tfconvert.converter.compat.target",
    "TFLiteConverter": "tfconvert.converter.compat.tflite_converter",
    "TargetSpec": "tfconvert.converter.compat.target",
    "Verify": "tfconvert.converter.verify_options",
    "client": "tfconvert.client",
    "compat": "tfconvert.compat",
    "composites": "tfconvert.composites",
    "convert": "tfconvert.converter.api",
    "experimental": "tfconvert.experimental",
    "load": "tfconvert.converter.iree.runtime",
    "patterns": "tfconvert.patterns",
    "supported_ops": "tfconvert.converter.inspection.op_support",
}
_MODULES = frozenset(("client", "compat", "composites", "experimental", "patterns"))
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
