"""Models as the user wants them: imported, and cut at the tensors that the source names."""

from __future__ import annotations

from tfconvert.converter.pipeline.runner import run_stages
from tfconvert.converter.pipeline.stages import TO_FUNCTIONS
from tfconvert.importers.source import Source
from tfconvert.schema.dialects.cut import CUT
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.options import Options


def is_uncut(module: ModuleOp) -> bool:
    """Returns whether a module is still to be cut."""
    return any(CUT in op.attributes for op in module.ops)


def opened(source: Source) -> ModuleOp:
    """Returns the module of a model as it was imported; no pass has run on it unless it had to be cut."""
    module = source.open()
    if is_uncut(module):
        _to_functions(module)
    return module


def as_functions(source: Source) -> ModuleOp:
    """Returns the module of a model as functions of plain ops, which call each other; cut where it has to be."""
    module = source.open(functional=True)
    _to_functions(module)
    return module


def _to_functions(module: ModuleOp) -> None:
    for _ in run_stages(module, TO_FUNCTIONS, Options()):
        pass
