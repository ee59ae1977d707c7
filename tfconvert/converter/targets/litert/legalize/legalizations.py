"""All legalizations. The modules of rare ops are loaded when a model has one of their ops.

The ops that an op is lowered to may be of another module, which is loaded in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from tfconvert.converter.rewrite.lazy_table import LazyModule, LazyTable
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.legalize import decomposed
from tfconvert.converter.targets.litert.legalize.entry import BuiltinRow
from tfconvert.ops.index import MODULES
from tfconvert.ops.registry import MODULE_OF, decompositions

# A module has `ENTRIES`, or `PATTERNS` that recognise groups of ops; its ops are those that these start at. `GATES` are
# other ops without which none of its patterns matches.
_MODULES = (
    LazyModule("gelu"),
    LazyModule("fake_quant_layout"),
    LazyModule("elementwise", title="elementwise"),
    LazyModule("bitwise", title="bitwise"),
    LazyModule("activation", title="activation"),
    LazyModule("convolution", title="convolution"),
    LazyModule("pooling", title="pooling"),
    LazyModule("matmul", title="matmul"),
    LazyModule("normalization", title="normalization"),
    LazyModule("reduction", title="reduction"),
    LazyModule("shape", title="shape"),
    LazyModule("rearrange", title="rearrange"),
    LazyModule("indexing", title="indexing"),
    LazyModule("strided_slice", "StridedSlice", "strided slice"),
    LazyModule("state", title="state and control flow"),
    LazyModule("strings", title="strings"),
    LazyModule("channels_first", title="channels first"),
    LazyModule("narrow_types", title="narrow types"),
    LazyModule(
        "image",
        "NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 ResizeBilinear "
        "ResizeNearestNeighbor",
        "image",
    ),
    LazyModule("einsum", "Einsum", "einsum"),
    LazyModule(
        "scatter",
        "SegmentSum TensorScatterMax TensorScatterMin TensorScatterUpdate UnsortedSegmentMax UnsortedSegmentMin "
        "UnsortedSegmentProd UnsortedSegmentSum",
        "scatters and segments",
    ),
    LazyModule("partition", "DynamicStitch ParallelDynamicStitch", "partitions"),
    LazyModule(
        "diagonals", "MatrixDiag MatrixDiagV2 MatrixDiagV3 MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3", "diagonals"
    ),
    LazyModule("sparse", "SparseReshape SparseToDense", "sparse tensors"),
    LazyModule("strided_update", "TensorStridedSliceUpdate", "strided update"),
    LazyModule("signal", "Complex RFFT2D", "signal"),
    LazyModule("random", "Multinomial RandomStandardNormal RandomUniform XlaRngBitGenerator", "random"),
    LazyModule("binning", "Bincount Bucketize DenseBincount", "counting"),
    LazyModule("resampling", "CropAndResize ResizeArea ResizeBicubic ScaleAndTranslate", "resampling"),
    LazyModule(
        "fake_quant",
        "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel QuantizeAndDequantize "
        "QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4",
        "fake quantization",
    ),
    LazyModule("xla", "XlaPad", "ops of XLA"),
    LazyModule("ranking", "Unique", "sets"),
)

TABLE = LazyTable("tfconvert.converter.targets.litert.legalize", "tf.", _MODULES)

COMMON_FAMILIES = frozenset({"elementwise", "special_functions"})
"""Families of ops whose decompositions many networks need."""

Phases = tuple[PatternSet, PatternSet]
"""Patterns that recognise what one op can replace, and those that legalize the remaining ops."""


def common() -> Phases:
    """Returns the patterns of the ops that most networks consist of."""
    return phases_for(())


def everything() -> Phases:
    """Returns all patterns."""
    return _phases(frozenset(TABLE.modules), frozenset(filter(decomposed.lowerings, MODULES)) - COMMON_FAMILIES)


def phases_for(names: Iterable[str]) -> Phases:
    """Returns the patterns that a module with ops of some names needs."""
    names = tuple(names)
    families = {MODULE_OF[op] for name in names if decompositions(op := name.removeprefix("tf."))}
    return _phases(TABLE.needed(names), frozenset(families) - COMMON_FAMILIES)


@cache
def _phases(modules: frozenset[LazyModule], families: frozenset[str]) -> Phases:
    loaded = TABLE.load(modules)
    groups = [getattr(file, "ENTRIES", ()) for file in loaded]
    groups += map(decomposed.lowerings, sorted(COMMON_FAMILIES | families))
    recognising = [file for file in loaded if hasattr(file, "PATTERNS")]
    return (
        PatternSet(
            (pattern for file in recognising for pattern in file.PATTERNS),
            (name for file in recognising for name in getattr(file, "GATES", [each.root for each in file.PATTERNS])),
        ),
        PatternSet(entry.pattern() for group in groups for entry in group),
    )


class EntryInfo(NamedTuple):
    """An entry, as the table of support has it."""

    topic: str  # The topic's title.
    op: str  # TensorFlow's op.
    becomes: str  # Its replacement: names of `tfl` ops, or of `tf` ops that are legalized next.
    types: str  # The element types that it takes; empty for any.
    note: str  # The note for the user where it is applied, or empty.


def entries() -> Iterator[EntryInfo]:
    """Yields all entries, topic by topic, for the table of support."""
    for module, file in zip(TABLE.modules, TABLE.load(frozenset(TABLE.modules)), strict=True):
        for entry in getattr(file, "ENTRIES", ()):
            if isinstance(entry, BuiltinRow):
                yield EntryInfo(module.title, entry.op, entry.target, entry.types, "")
            else:
                yield EntryInfo(module.title, entry.op, entry.becomes, entry.types, entry.note)
    for lowering, becomes in decomposed.entries():
        yield EntryInfo(MODULE_OF[lowering.op].replace("_", " "), lowering.op, becomes, lowering.types, lowering.note)
