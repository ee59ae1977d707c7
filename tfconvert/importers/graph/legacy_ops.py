"""Ops that newer ones have replaced: NodeDefs of a main graph, rewritten before they are imported.

Only ops that no later stage supports are here; many old ops (`BatchMatMul`, `Concat`, `Inv`) are converted
as they are. Reference variables have a file of their own, `tfconvert/importers/graph/ref_variables.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tfconvert.importers.graph.attribute_values import integers, of_type
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

Replacement = list[pb.NodeDef]
"""The replacement of a node: nodes of new names, and last the one that has the old node's name."""


def upgrade_legacy_ops(nodes: Mapping[str, pb.NodeDef]) -> Mapping[str, pb.NodeDef]:
    """Returns the nodes with legacy ones replaced; the same mapping if there are none."""
    old = [node for node in nodes.values() if node.op in _LEGACY]
    if not old:
        return nodes
    upgraded = dict(nodes)
    for node in old:
        for new in _replacement(node):
            upgraded[new.name] = new
    return upgraded


def _replacement(node: pb.NodeDef) -> Replacement:
    rewrite = _REWRITTEN.get(node.op)
    return [_like(node, _RENAMED[node.op])] if rewrite is None else rewrite(node)


def _like(node: pb.NodeDef, op: str) -> pb.NodeDef:
    new = pb.NodeDef()
    new.CopyFrom(node)
    new.op = op
    return new


def _batch_norm(node: pb.NodeDef) -> Replacement:
    """Replaces the oldest batch normalization: operands in another order, a scale that may not be meant."""
    data = [text for text in node.input if not text.startswith("^")]
    if len(data) != 5:
        return [node]
    value, mean, variance, beta, gamma = data
    element = node.attr["T"].type
    extra: Replacement = []
    if not node.attr["scale_after_normalization"].b:
        ones = pb.NodeDef(name=f"{node.name}/no_scale", op="OnesLike", input=[gamma], attr={"T": of_type(element)})
        extra, gamma = [ones], ones.name
    controls = [text for text in node.input if text.startswith("^")]
    new = pb.NodeDef(name=node.name, op="FusedBatchNormV3", device=node.device)
    new.input.extend([value, gamma, beta, mean, variance, *controls])
    for name in ("T", "U"):
        new.attr[name].type = element
    new.attr["epsilon"].f = node.attr["variance_epsilon"].f
    new.attr["is_training"].b = False
    return [*extra, new]


def _top_k(node: pb.NodeDef) -> Replacement:
    """Converts the attribute `k` to an operand."""
    count = integers(f"{node.name}/k", node.attr["k"].i)
    new = _like(node, "TopKV2")
    del new.attr["k"]
    new.input.insert(1, count.name)
    return [count, new]


def _table(op: str) -> Callable[[pb.NodeDef], Replacement]:
    """The handle of a table was two strings, and is a scalar now."""

    def rewrite(node: pb.NodeDef) -> Replacement:
        new = _like(node, op)
        new.attr.pop("_output_shapes", None)
        return [new]

    return rewrite


def _space_and_batch(op: str) -> Callable[[pb.NodeDef], Replacement]:
    def rewrite(node: pb.NodeDef) -> Replacement:
        size = node.attr["block_size"].i
        block = integers(f"{node.name}/block_shape", size, size)
        new = _like(node, op)
        del new.attr["block_size"]
        new.attr["Tblock_shape"].type = pb.DT_INT32
        if "Tidx" in new.attr:
            new.attr["Tcrops"].CopyFrom(node.attr["Tidx"])
            del new.attr["Tidx"]
        new.input.insert(1, block.name)
        return [block, new]

    return rewrite


# Ops that were only renamed; their attributes are the same, or have a default now.
_RENAMED: Mapping[str, str] = {
    "BatchCholesky": "Cholesky",
    "BatchFFT": "FFT",
    "BatchFFT2D": "FFT2D",
    "BatchFFT3D": "FFT3D",
    "BatchIFFT": "IFFT",
    "BatchIFFT2D": "IFFT2D",
    "BatchIFFT3D": "IFFT3D",
    "BatchMatrixBandPart": "MatrixBandPart",
    "BatchMatrixDeterminant": "MatrixDeterminant",
    "BatchMatrixDiag": "MatrixDiag",
    "BatchMatrixDiagPart": "MatrixDiagPart",
    "BatchMatrixInverse": "MatrixInverse",
    "BatchMatrixSetDiag": "MatrixSetDiag",
    "BatchMatrixSolve": "MatrixSolve",
    "BatchMatrixSolveLs": "MatrixSolveLs",
    "BatchMatrixTriangularSolve": "MatrixTriangularSolve",
    "BatchSelfAdjointEigV2": "SelfAdjointEigV2",
    "BatchSvd": "Svd",
    "GuaranteeConst": "Identity",
    "InitializeTable": "InitializeTableV2",
    "InitializeTableFromTextFile": "InitializeTableFromTextFileV2",
    "LookupTableExport": "LookupTableExportV2",
    "LookupTableFind": "LookupTableFindV2",
    "LookupTableImport": "LookupTableImportV2",
    "LookupTableInsert": "LookupTableInsertV2",
    "LookupTableSize": "LookupTableSizeV2",
    "PlaceholderV2": "Placeholder",
}

_REWRITTEN: Mapping[str, Callable[[pb.NodeDef], Replacement]] = {
    "BatchNormWithGlobalNormalization": _batch_norm,
    "BatchToSpace": _space_and_batch("BatchToSpaceND"),
    "HashTable": _table("HashTableV2"),
    "MutableHashTable": _table("MutableHashTableV2"),
    "SpaceToBatch": _space_and_batch("SpaceToBatchND"),
    "TopK": _top_k,
}

_LEGACY = frozenset(_RENAMED) | frozenset(_REWRITTEN)

CURRENT: Mapping[str, str] = {
    **_RENAMED,
    "BatchNormWithGlobalNormalization": "FusedBatchNormV3",
    "BatchToSpace": "BatchToSpaceND",
    "HashTable": "HashTableV2",
    "MutableHashTable": "MutableHashTableV2",
    "SpaceToBatch": "SpaceToBatchND",
    "TopK": "TopKV2",
}
"""Op -> the one that a graph has in its place once it is imported."""
