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
    from tfconvert.api import Model, convert
    from tfconvert.client.client import AsyncClient, Client
    from tfconvert.compat.enumerators import OpsSet, Optimize
    from tfconvert.compat.interpreter import Interpreter
    from tfconvert.compat.target import RepresentativeDataset, TargetSpec
    from tfconvert.compat.tflite_converter import TFLiteConverter
    from tfconvert.converter.targets.iree.runtime import Program, load
    from tfconvert.importers.source import Source
    from tfconvert.schema.diagnostics import ConversionError, Diagnostic
    from tfconvert.schema.limits import Limits
    from tfconvert.settings.quantization import Quantize
    from tfconvert.settings.targets import Iree, LiteRT, StableHLO
    from tfconvert.settings.verify_options import Verify
    from tfconvert.tools.op_support import supported_ops

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
    "AsyncClient": "tfconvert.client.client",
    "Client": "tfconvert.client.client",
    "ConversionError": "tfconvert.schema.diagnostics",
    "Diagnostic": "tfconvert.schema.diagnostics",
    "Interpreter": "tfconvert.compat.interpreter",
    "Iree": "tfconvert.settings.targets",
    "Limits": "tfconvert.schema.limits",
    "LiteRT": "tfconvert.settings.targets",
    "Model": "tfconvert.api",
    "OpsSet": "tfconvert.compat.enumerators",
    "Optimize": "tfconvert.compat.enumerators",
    "Program": "tfconvert.converter.targets.iree.runtime",
    "Quantize": "tfconvert.settings.quantization",
    "RepresentativeDataset": "tfconvert.compat.target",
    "Source": "tfconvert.importers.source",
    "StableHLO": "tfconvert.settings.targets",
    "TFLiteConverter": "tfconvert.compat.tflite_converter",
    "TargetSpec": "tfconvert.compat.target",
    "Verify": "tfconvert.settings.verify_options",
    "client": "tfconvert.client",
    "compat": "tfconvert.compat",
    "composites": "tfconvert.composites",
    "convert": "tfconvert.api",
    "experimental": "tfconvert.experimental",
    "load": "tfconvert.converter.targets.iree.runtime",
    "patterns": "tfconvert.patterns",
    "supported_ops": "tfconvert.tools.op_support",
}
# Names that represent a whole module.
_MODULES = frozenset(("client", "compat", "composites", "experimental", "patterns"))


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
