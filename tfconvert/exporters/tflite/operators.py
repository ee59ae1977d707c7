"""Calls of operators: their codes with versions, and their options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.dialects import quant, tfl, tfl_file
from tfconvert.schema.dialects.locations import found_at
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.tables import TFLITE
from tfconvert.schema.tflite.versions import Call, Operand, first_release, operator_version, parse_release, rules

_PLACEHOLDER = TFLITE.enums["BuiltinOperator"]["PLACEHOLDER_FOR_GREATER_OP_CODES"]
_CUSTOM = TFLITE.enums["BuiltinOperator"]["CUSTOM"]

_NEWER = "newer-runtime"
_OLDER = "change the model so that it doesn't need the operator"
# The operator whose weights have one scale for each channel in new versions only; convolutions always had these.
_DENSE = "FULLY_CONNECTED"
_ONE_SCALE = 'give dense layers one scale for all their weights: per_channel="not-dense" (--per-tensor-dense)'


class _Code:
    """An entry of the model's list of operators."""

    __slots__ = ("index", "number", "version")

    def __init__(self, index: int, number: int, version: int = 1) -> None:
        self.index = index
        self.number = number
        self.version = version


class _Form(NamedTuple):
    """The common parts of the tables of equal calls."""

    code: int  # The operator's index.
    version: int  # The version that they require.
    # The options table and its fields, which nothing may change; `None` without one.
    options: tuple[str, dict[str, Any]] | None


class OperatorCodes:
    """The operators that a model uses, in the order of their first use.

    Attributes:
        calls: The number of uses of each, custom ones by their own name.

    Args:
        fixed: The versions that some have regardless of their calls, by name.
        are_minimums: Whether they are only minimum versions, which calls may raise.
        target: The release of the runtime that has to run the model; any if empty.
    """

    def __init__(self, fixed: Mapping[str, int] | None = None, *, are_minimums: bool = False, target: str = "") -> None:
        self.calls: Counter[str] = Counter()
        self._target = target
        self._newer: dict[tuple[str, int], list[Operation]] = {}
        self._fixed = fixed or {}
        self._are_minimums = are_minimums
        self._codes: dict[tuple[str, str], _Code] = {}
        self._forms: dict[tuple[object, ...], tuple[_Form, tuple[object, ...]]] = {}

    def use(self, name: str, number: int, version: int, custom: str = "") -> int:
        """Records a use of an operator and returns its index.

        Args:
            name: Enumerator of `BuiltinOperator`.
            number: The enumerator's value.
            version: The version that this use requires.
            custom: Name of a custom operator.
        """
        code = self._codes.get((name, custom))
        if code is None:
            code = self._codes[name, custom] = _Code(len(self._codes), number)
        fixed = self._fixed.get(custom or name, 0)
        code.version = fixed if fixed and not self._are_minimums else max(fixed, code.version, version)
        self.calls[custom or name] += 1
        return code.index

    def names(self) -> list[str]:
        """Returns the names of the operators by their indices, custom ones' own."""
        return [custom or name for name, custom in self._codes]

    def form(
        self,
        op: tfl.TFLOp,
        operator: operators.Operator,
        name: str,
        operands: tuple[Operand, ...],
        results: tuple[Operand, ...],
        subgraph: SubgraphIndex,
    ) -> _Form:
        """Records a call of a builtin operator; returns what its table shares with equal calls.

        Args:
            op: The op.
            operator: The operator.
            name: Enumerator of `BuiltinOperator`.
            operands: The operands' types.
            results: The results' types.
            subgraph: Finds the subgraphs that the op calls.
        """
        # Networks repeat their calls. The key is by identity: types and attributes are interned, and kept alive here.
        held = (*op.properties.values(), *operands, *results)
        key = (name, len(operands), *op.properties, *map(id, held))
        known = self._forms.get(key)
        if known is not None:
            self.calls[name] += 1
            form = known[0]
        else:
            fields = options(op, subgraph)
            version = operator_version(name, Call(operands, results, fields)) if name in rules() else 1
            code = self.use(name, operator.code, version)
            form = _Form(code, version, (operator.options, fields) if operator.options else None)
            if op.op_name not in tfl.SUBGRAPHS:
                self._forms[key] = (form, held)
        if self._target:
            self._note(name, form.version, op)
        return form

    def uses(self) -> list[tuple[str, int]]:
        """Returns the builtin operators with their required versions."""
        return [(name, code.version) for (name, custom), code in self._codes.items() if not custom]

    def to_register(self) -> Counter[str]:
        """Returns the number of calls of custom operators that the app must register."""
        names = [custom for _, custom in self._codes if custom and operators.needs_registration(custom)]
        return Counter({name: self.calls[name] for name in names})

    def _note(self, name: str, version: int, op: Operation) -> None:
        """Records the op that requires a version of an operator, if the target doesn't have it."""
        if self._is_newer(name, version):
            self._newer.setdefault((name, version), []).append(op)

    def _is_newer(self, name: str, version: int) -> bool:
        release, target = first_release(name, version), parse_release(self._target)
        known = parse_release(release) if release else None
        return known is None or target is None or known > target

    def newer(self) -> Iterator[Diagnostic]:
        """Yields an error for each version of an operator that the target doesn't have, with the first such op."""
        versions = {name: version for name, version in self.uses() if self._target and self._is_newer(name, version)}
        for (name, version), ops in self._newer.items():
            versions.pop(name, None)
            also = f" (and {len(ops) - 1} more)" if len(ops) > 1 else ""
            yield found_at(ops[0], _NEWER, f"{self._needed(name, version)}{also}", _way_out(name, version, ops))
        # An imported file states versions that its calls may not require.
        for name, version in versions.items():
            yield Diagnostic(_NEWER, self._needed(name, version), hint=_way_out(name, version))

    def _needed(self, name: str, version: int) -> str:
        release = first_release(name, version)
        needs = f"needs the runtime {release}" if release else "is in no known release of the runtime"
        return f"{name} of version {version} {needs}, and the target is {self._target}"

    def versions(self) -> dict[str, int]:
        """Returns the version of every operator, custom ones by their own name."""
        return {custom or name: code.version for (name, custom), code in self._codes.items()}

    def trees(self) -> list[dict[str, Any]]:
        """Returns the `OperatorCode` tables."""
        result = []
        for (_, custom), code in self._codes.items():
            tree: dict[str, Any] = {"deprecated_builtin_code": min(code.number, _PLACEHOLDER)}
            if custom:
                tree["custom_code"] = custom
            result.append(tree | {"version": code.version, "builtin_code": code.number})
        return result


def _way_out(name: str, version: int, ops: Sequence[Operation] = ()) -> str:
    """Returns what to do about operators that the target doesn't have."""
    release = first_release(name, version)
    ways = [f"name that runtime: target_runtime={release!r} (--target-runtime {release})"] if release else []
    if name == _DENSE and any(_has_scales(value) for op in ops for value in op.operands):
        ways.append(_ONE_SCALE)
    return "; or ".join([*ways, _OLDER])


def _has_scales(value: Value) -> bool:
    element = value.element
    return isinstance(element, quant.UniformType) and element.data.axis is not None


SubgraphIndex = Callable[[str, bool], int]
"""Returns the index of the subgraph that a function becomes, or of one that nothing else calls."""

# Operators that leave their subgraphs resized for one call: no other may call the same.
_ALONE = frozenset({"while"})


def options(op: tfl.TFLOp, subgraph: SubgraphIndex) -> dict[str, Any]:
    """Returns the fields of an op's options table.

    Args:
        op: The op.
        subgraph: Finds the subgraphs that it calls.
    """
    calls: Mapping[str, str] = tfl.SUBGRAPHS.get(op.op_name, {})
    alone = op.op_name in _ALONE
    return {
        calls.get(name, name): _index(value, subgraph, alone) if name in calls else tfl.python_value(value)
        for name, value in op.properties.items()
    }


def _index(value: Attribute, subgraph: SubgraphIndex, alone: bool) -> int | tuple[int, ...]:
    if isinstance(value, ArrayAttr):
        return tuple(subgraph(tfl.python_value(item), alone) for item in value.data)
    return subgraph(tfl.python_value(value), alone)


def tree(
    op: tfl.TFLOp,
    operator: operators.Operator,
    codes: OperatorCodes,
    operands: Sequence[tuple[int, Operand]],
    results: Sequence[tuple[int, Operand]],
    subgraph: SubgraphIndex,
) -> dict[str, Any]:
    """Returns the `Operator` table of an op.

    Args:
        op: The op.
        operator: The operator that it calls.
        codes: The collection that the operator is recorded in.
        operands: Indices and types of the operands' tensors, -1 for those that are absent.
        results: Indices and types of the results' tensors.
        subgraph: Finds the subgraphs that the op calls.
    """
    inputs, operand_types = _apart(operands)
    outputs, result_types = _apart(results)
    result: dict[str, Any] = {"opcode_index": 0, "inputs": inputs, "outputs": outputs}
    if operator.name == tfl.CUSTOM:
        custom = tfl.python_value(op.properties[tfl.CUSTOM_CODE])
        result["opcode_index"] = codes.use("CUSTOM", _CUSTOM, 1, custom)
        option = op.properties.get(tfl.CUSTOM_OPTION)
        if option is not None:
            result["custom_options"] = tfl.python_value(option)
    else:
        form = codes.form(op, operator, operator.name.upper(), operand_types, result_types, subgraph)
        result["opcode_index"] = form.code
        if form.options is not None:
            result[operator.union] = form.options
    if op.attributes and tfl_file.OPERATOR in op.attributes:
        result.update(tfl_file.from_dictionary("Operator", op.attributes[tfl_file.OPERATOR]))
    return result


def _apart(tensors: Sequence[tuple[int, Operand]]) -> tuple[tuple[int, ...], tuple[Operand, ...]]:
    """Returns tensors' indices and their types."""
    if not tensors:
        return (), ()
    indices, kinds = zip(*tensors, strict=True)
    return indices, kinds
