"""The table of support of StableHLO and IREE, put together from the lowerings and the passes before them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tfconvert.converter.pipeline.stages import names_of
from tfconvert.converter.targets.iree.rewrites.rules import REFUSED
from tfconvert.converter.targets.stablehlo.legalize import decomposed, regions
from tfconvert.converter.targets.stablehlo.legalize.lowerings import FAMILIES
from tfconvert.converter.targets.stablehlo.stages import STAGES
from tfconvert.importers.graph.legacy_ops import CURRENT
from tfconvert.schema.tensorflow import op_defs
from tfconvert.tools.op_support import How, OpSupport, Way, is_folded, rewritten, upgraded, without_legalization

MEANINGS: Mapping[How, str] = {
    "legalized": "ops of StableHLO, with known sizes or open ones, compute the same",
    "rewritten": "a pass replaces or removes it before ops are chosen",
    "folded": "only where its operands are constants, so that its result is one",
    "refused": "never: it needs what no program holds, or IREE does not compile what it becomes",
    "unknown": "StableHLO has no such op, and no others that compute the same are known yet",
}
"""How ops are converted to StableHLO."""

# Pass -> ops that its code, not a table, replaces.
_BY_HAND: Mapping[str, str] = {
    "carry-state": "AssignVariableOp ReadVariableOp VarHandleOp VarIsInitializedOp",
    "tables-to-gathers": "HashTableV2 InitializeTableFromTextFileV2 InitializeTableV2 LookupTableExportV2 "
    "LookupTableFindV2 LookupTableImportV2 LookupTableSizeV2",
    "legalize-to-stablehlo": "Assert Const NoOp",
}

_NOTES: Mapping[str, str] = {
    "carry-state": "variables that are only read become weights before",
    "tables-to-gathers": "tables of numbers",
}

CONTROL_FLOW = "control flow"
"""The family of branches and loops, which become regions."""

# Op of StableHLO that IREE refuses with any operands -> all ops that it is the lowering of.
_BECOMES: Mapping[str, str] = {
    "stablehlo.cholesky": "BatchCholesky Cholesky",
    "stablehlo.triangular_solve": "BatchMatrixTriangularSolve MatrixTriangularSolve",
}


@cache
def supported_ops(target: str) -> tuple[OpSupport, ...]:
    """Returns what becomes of each of TensorFlow's ops, by name; unknown ones for its own use are left out.

    Args:
        target: `stablehlo` or `iree`.
    """
    families = _families()
    removed = _removed()
    refused = _refused_by_iree() if target == "iree" else {}
    everything = (_support(name, families, removed, refused) for name in op_defs.names())
    return tuple(each for each in everything if each.how != "unknown" or not each.op.startswith("_"))


def _support(
    name: str, families: Mapping[str, str], removed: Mapping[str, str], refused: Mapping[str, str]
) -> OpSupport:
    if name in refused:
        becomes = refused[name]
        return OpSupport(name, "refused", families[name], (Way((becomes,)),), reason=REFUSED[becomes])
    if name in families:
        return OpSupport(name, "legalized", families[name])
    current = CURRENT.get(name)
    if current is not None:
        return upgraded(name, _support(current, families, removed, refused))
    gone = without_legalization(name, removed)
    if gone is not None:
        return gone._replace(reason=gone.reason or _NOTES.get(gone.by, ""))
    return OpSupport(name, "folded" if is_folded(name) else "unknown")


def _families() -> dict[str, str]:
    """Returns the family of each op that has a lowering."""
    found = {name.removeprefix("tf."): CONTROL_FLOW for name in regions.HANDLED}
    composed = {name: module.replace("_", " ") for name, module in decomposed.families()}
    return found | composed | {name: family for family, lowerings in FAMILIES.items() for name in lowerings}


def _removed() -> dict[str, str]:
    """Returns the ops that are gone when legalization begins, with the stage of StableHLO's pipeline."""
    passes = {*names_of(STAGES), "import"}
    found = {op: name for op, name in rewritten().items() if name in passes}
    return found | {op: name for name, ops in _BY_HAND.items() for op in ops.split()}


def _refused_by_iree() -> dict[str, str]:
    """Returns the ops that IREE never compiles, each with the op of StableHLO."""
    return {op: name for name, ops in _BECOMES.items() for op in ops.split()}
