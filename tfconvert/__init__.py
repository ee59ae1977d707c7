"""tfconvert: TensorFlow models to LiteRT, without TensorFlow.

    import tfconvert

    model = tfconvert.convert("saved_model_dir")
    model.save("model.tflite")
    scores = model(image)

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
    from tfconvert.api import Model, bench, compare, convert, diff, inspect, verify, view
    from tfconvert.client.client import AsyncClient, Client
    from tfconvert.compat.converter import RepresentativeDataset, TargetSpec
    from tfconvert.compat.enumerators import OpsSet, Optimize
    from tfconvert.compat.interpreter import Interpreter
    from tfconvert.compat.tflite_converter import TFLiteConverter
    from tfconvert.importers.source import Source
    from tfconvert.schema.diagnostics import ConversionError, Diagnostic
    from tfconvert.schema.limits import Limits
    from tfconvert.settings.quantization import Quantize
    from tfconvert.settings.targets import Iree, LiteRT, StableHLO
    from tfconvert.settings.verify_options import Verify
    from tfconvert.tools.op_support import supported_ops
    from tfconvert.tools.programs import Program, load

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "Client",
    "ConversionError",
    "Diagnostic",
    "Interpreter",
    "Iree",
    "Limits",
    "LiteRT",
    "Model",
    "OpsSet",
    "Optimize",
    "Program",
    "Quantize",
    "RepresentativeDataset",
    "Source",
    "StableHLO",
    "TFLiteConverter",
    "TargetSpec",
    "Verify",
    "__version__",
    "bench",
    "client",
    "compare",
    "compat",
    "composites",
    "convert",
    "diff",
    "experimental",
    "inspect",
    "load",
    "patterns",
    "supported_ops",
    "verify",
    "view",
]

# The public names of each module.
_NAMES = {
    "tfconvert.api": ("Model", "bench", "compare", "convert", "diff", "inspect", "verify", "view"),
    "tfconvert.client.client": ("AsyncClient", "Client"),
    "tfconvert.compat.converter": ("RepresentativeDataset", "TargetSpec"),
    "tfconvert.compat.enumerators": ("OpsSet", "Optimize"),
    "tfconvert.compat.interpreter": ("Interpreter",),
    "tfconvert.compat.tflite_converter": ("TFLiteConverter",),
    "tfconvert.importers.source": ("Source",),
    "tfconvert.schema.diagnostics": ("ConversionError", "Diagnostic"),
    "tfconvert.schema.limits": ("Limits",),
    "tfconvert.settings.quantization": ("Quantize",),
    "tfconvert.settings.targets": ("Iree", "LiteRT", "StableHLO"),
    "tfconvert.settings.verify_options": ("Verify",),
    "tfconvert.tools.op_support": ("supported_ops",),
    "tfconvert.tools.programs": ("Program", "load"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}
_MODULES = ("client", "compat", "composites", "experimental", "patterns")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"tfconvert.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'tfconvert' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
