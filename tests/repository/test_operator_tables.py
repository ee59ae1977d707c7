"""LiteRT's operators have one table: code asks it for lists of names instead of having its own."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.size import tables_in
from tests.support.sources import SourceFile

# The most tables with six or more names that a file has. They give each operator something of its own (a kernel, a
# rule, a form), or name ops of TensorFlow or StableHLO that have the same names. A list of operators with something in
# common is a trait in `tfconvert/schema/tflite/operators.tsv`, and one with exceptions is such a set without these.
TABLES = {
    "converter/executor/litert_ops.py": 2,
    "converter/executor/stablehlo/elementwise.py": 2,
    "converter/from_stablehlo/elementwise.py": 2,
    "converter/from_stablehlo/idioms.py": 1,
    "converter/from_stablehlo/scattering.py": 1,
    "converter/passes/xla_to_stablehlo.py": 1,
    "converter/targets/litert/forms/elementwise.py": 1,
    "converter/targets/litert/forms/tables.py": 8,
    "converter/targets/litert/legalize/narrow_types.py": 2,
    "converter/targets/litert/optimize/arithmetic.py": 1,
    "converter/targets/litert/optimize/optimizations.py": 2,
    "converter/targets/litert/optimize/rows.py": 1,
    "converter/targets/litert/optimize/simplifications.py": 1,
    "converter/targets/litert/quantize/hybrid.py": 1,
    "converter/targets/litert/quantize/operand_needs.py": 1,
    "converter/targets/litert/quantize/plan.py": 1,
    "converter/targets/litert/quantize/rules.py": 3,
    "converter/targets/litert/quantize/speed.py": 1,
    "converter/targets/stablehlo/legalize/elementwise.py": 2,
    "converter/targets/stablehlo/legalize/shaping.py": 1,
    "converter/targets/stablehlo/passes/materialize_constraints.py": 1,
    "converter/validation/domains.py": 1,
    "schema/dialects/expressions.py": 1,
    "schema/dialects/relations/stablehlo_dimensions.py": 1,
    "schema/dialects/tf_traits.py": 2,
}

_GENERATED = "converter/targets/litert/rewrite_index.py"


def test_no_file_lists_operators_of_its_own(source_files: Sequence[SourceFile]) -> None:
    found = {}
    for file in source_files:
        name = file.path.as_posix().partition("tfconvert/")[2]
        if name and not name.startswith("ops/") and name != _GENERATED and (count := tables_in(file.tree)):
            found[name] = count
    assert {name: count for name, count in found.items() if count > TABLES.get(name, 0)} == {}
