"""Rewrites of a main graph's NodeDefs before they are imported: ops that newer ones have replaced, and references.

Only ops that no later stage supports are here; many old ops (`BatchMatMul`, `Concat`, `Inv`) are converted as they are.

Reference variables of TensorFlow 1 become handles (resources). A reference is a variable and its value at once: an op
that uses the value reads it when it runs. Where nothing that is needed writes a variable, one read serves all, and
references that pass through control flow are values. Otherwise the handle is passed, and every op has reads of its own,
after all that the op itself waits for. An identity of a reference is a value, but it shares the variable's memory, in
which later writes show: its users, also those in a branch or a loop, read in the same way. A fetched reference is read
when its node runs.

A node keeps its name as the name of the value, so it can still be fed and fetched; handles and writes get new names:

    v = VariableV2()            ->  v/handle = VarHandleOp(); v = ReadVariableOp(v/handle)
    a = AssignAdd(v, x)         ->  a/write = AssignAddVariableOp(v/handle, x); a = ReadVariableOp(v/handle, ^a/write)
    y = Neg(v, ^a)              ->  y/read_0 = ReadVariableOp(v/handle, ^a); y = Neg(y/read_0, ^a)
    i = Identity(v)             ->  i = ReadVariableOp(v/handle)
    z = Neg(i, ^a)              ->  z/read_0 = ReadVariableOp(v/handle, ^i, ^a); z = Neg(z/read_0, ^a)
    s = RefSwitch(v, p)         ->  s = Switch(v/handle, p)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache

from tfconvert.importers.graph.attributes import integers, of_type
from tfconvert.importers.graph.node_graph import TensorName, parse_graph_input
from tfconvert.importers.graph.reachability import needed_nodes
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

Replacement = list[pb.NodeDef]
"""The replacement of a node: nodes with new names, and as the last the one with the old node's name."""


def upgrade_legacy_ops(nodes: Mapping[str, pb.NodeDef]) -> Mapping[str, pb.NodeDef]:
    """Returns the nodes with legacy ones replaced."""
    upgraded = dict(nodes)
    for node in [node for node in nodes.values() if node.op in LEGACY]:
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
    """Replaces the oldest batch normalization: operands in another order, a scale that may be disabled."""
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
    """The handle of a table used to be two strings and is now a scalar."""

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

LEGACY = frozenset(_RENAMED) | frozenset(_REWRITTEN)
"""The ops that `upgrade_legacy_ops` replaces."""

CURRENT: Mapping[str, str] = {
    **_RENAMED,
    "BatchNormWithGlobalNormalization": "FusedBatchNormV3",
    "BatchToSpace": "BatchToSpaceND",
    "HashTable": "HashTableV2",
    "MutableHashTable": "MutableHashTableV2",
    "SpaceToBatch": "SpaceToBatchND",
    "TopK": "TopKV2",
}
"""The op that replaces each legacy op."""


HANDLE = "/handle"
"""The suffix of a variable's handle."""

TEMPORARY = "TemporaryVariable"
"""The op of a variable without a value until the first assignment."""

VARIABLES = frozenset({"Variable", "VariableV2", TEMPORARY})
"""The ops that `upgrade_ref_variables` replaces."""

# Ops that pass references on -> those that do the same with values and handles.
_FORWARDERS = {
    "RefEnter": "Enter",
    "RefExit": "Exit",
    "RefIdentity": "Identity",
    "RefMerge": "Merge",
    "RefNextIteration": "NextIteration",
    "RefSwitch": "Switch",
}

_ALIAS = "Identity"
# Ops that return a variable's memory as a value; an `Enter` of a constant also does.
_ALIASES = frozenset({_ALIAS, "Switch"})

# Ops that run as soon as one of their inputs is there.
_MERGES = frozenset({"Merge", "RefMerge"})

# Ops that only read.
_READERS = frozenset({_ALIAS, "DestroyTemporaryVariable"})

# Ops that have a reference operand but neither read nor write.
_QUESTIONS = {"IsVariableInitialized": "VarIsInitializedOp"}

# Ops whose twins for handles are not called `Resource...`.
_WRITERS = {"Assign": "AssignVariableOp", "AssignAdd": "AssignAddVariableOp", "AssignSub": "AssignSubVariableOp"}


def upgrade_ref_variables(
    nodes: Mapping[str, pb.NodeDef], targets: Iterable[TensorName], fed: Collection[tuple[str, int]]
) -> Mapping[str, pb.NodeDef]:
    """Returns the nodes with reference variables replaced by handles.

    Args:
        nodes: The graph's nodes by name.
        targets: The live part of the graph; only its writes count, and only it is rewritten.
        fed: Tensors that are fed, as (node, index).
    """
    return _Upgrade(needed_nodes(nodes, targets, fed)).apply(nodes)


@cache
def _ref_arguments(op: str) -> tuple[bool, ...]:
    """Returns for each input argument of an op whether it is a reference; nothing for ops without any."""
    op_def = op_defs.lookup(op)
    refs = tuple(argument.is_ref for argument in op_def.input_arg) if op_def is not None else ()
    return refs if any(refs) else ()


@cache
def _twin(op: str) -> str:
    """Returns the op on handles that replaces an op on references; empty otherwise."""
    twin = _WRITERS.get(op) or _QUESTIONS.get(op) or f"Resource{op}"
    return twin if op_defs.lookup(twin) is not None else ""


class _Upgrade:
    """The rewriting of one graph.

    Attributes:
        needed: The nodes that are rewritten, by name.
    """

    __slots__ = ("_bases", "_created", "_group", "_variable_groups", "_written", "needed")

    def __init__(self, needed: Mapping[str, pb.NodeDef]) -> None:
        self.needed = needed
        self._group: dict[str, str] = {}
        self._variable_groups: set[str] = set()
        self._written: set[str] = set()
        self._created: dict[str, pb.NodeDef] = {}
        self._bases: dict[str, str] = {}

    def apply(self, nodes: Mapping[str, pb.NodeDef]) -> Mapping[str, pb.NodeDef]:
        """Returns all nodes, with those that use references rewritten."""
        self._find_groups()
        for node in self.needed.values():
            if node.op in VARIABLES:
                self._rewrite_variable(node)
            elif self._is_reference(node.name) and (node.op in _FORWARDERS or self._forwards_memory(node)):
                self._rewrite_forwarder(node)
            elif self._is_access(node):
                self._rewrite_access(node)
            else:
                self._rewrite_user(node)
        return {**nodes, **self._created}

    def _find_groups(self) -> None:
        """Puts all nodes that references pass through from one variable into a group, and finds the writes."""
        for node in self.needed.values():
            if node.op in VARIABLES:
                self._join(node.name, node.name)
            if _shares_memory(node):
                self._join(parse_graph_input(_data(node)[0]).node, node.name)
            for position in self._ref_positions(node):
                self._join(parse_graph_input(_data(node)[position]).node, node.name)
        for name in self._group:
            member = self.needed.get(name)
            op = member.op if member is not None else "Identity"
            group = self._find(name)
            if op in VARIABLES:
                self._variable_groups.add(group)
            elif op not in _FORWARDERS and op not in _QUESTIONS and op not in _READERS:
                self._written.add(group)

    def _find(self, name: str) -> str:
        group = self._group
        root = name
        while group[root] != root:
            root = group[root]
        while group[name] != root:
            group[name], name = root, group[name]
        return root

    def _join(self, one: str, other: str) -> None:
        self._group.setdefault(one, one)
        self._group.setdefault(other, other)
        self._group[self._find(one)] = self._find(other)

    def _ref_positions(self, node: pb.NodeDef) -> Iterator[int]:
        """Yields the positions of a node's inputs that are used as references."""
        if node.op in _FORWARDERS:
            yield from range(len(_data(node)) if node.op == "RefMerge" else min(1, len(_data(node))))
        else:
            for position, (is_ref, _) in enumerate(zip(_ref_arguments(node.op), _data(node), strict=False)):
                if is_ref:
                    yield position

    def _is_reference(self, name: str) -> bool:
        return name in self._group and name in self.needed and self._find(name) in self._variable_groups

    def _is_written(self, name: str) -> bool:
        return self._is_reference(name) and self._find(name) in self._written

    def _rewrite_variable(self, node: pb.NodeDef) -> None:
        shape = node.attr["shape"]
        if node.op == "Variable" and not shape.shape.dim:
            # The oldest variables write an unknown shape like a scalar's.
            shape = pb.AttrValue(shape=pb.TensorShapeProto(unknown_rank=True))
        attributes = {"dtype": node.attr["dtype"], "shape": shape, "shared_name": pb.AttrValue(s=node.name.encode())}
        handle = pb.NodeDef(name=node.name + HANDLE, op="VarHandleOp", device=node.device, attr=attributes)
        self._created[handle.name] = handle
        self._read(node.name, handle.name, node.attr["dtype"].type, _controls(node))

    def _rewrite_forwarder(self, node: pb.NodeDef) -> None:
        new = pb.NodeDef()
        new.CopyFrom(node)
        new.op = _FORWARDERS.get(node.op, node.op)
        if self._is_written(node.name):
            del new.input[:]
            new.input.extend(self._inputs(node, set(self._ref_positions(node)) or {0}))
            new.attr["T"].type = pb.DT_RESOURCE
        self._created[node.name] = new

    def _rewrite_access(self, node: pb.NodeDef) -> None:
        """Rewrites an op that writes or queries a variable; the written value gets the node's name."""
        twin = _twin(node.op)
        if node.op in _READERS:
            handle, controls = self._handle(_data(node)[0])
            self._read(node.name, handle, _element(node), [*controls, *_controls(node)])
            return
        if not twin:
            return
        op_def, twin_def = op_defs.lookup(node.op), op_defs.lookup(twin)
        assert op_def is not None
        assert twin_def is not None
        has_value = bool(op_def.output_arg) and not twin_def.output_arg
        new = pb.NodeDef(name=f"{node.name}/write" if has_value else node.name, op=twin, device=node.device)
        new.input.extend(self._inputs(node, set(self._ref_positions(node))))
        for attr in twin_def.attr:
            source = "T" if attr.name == "dtype" and "dtype" not in node.attr else attr.name
            if source in node.attr:
                new.attr[attr.name].CopyFrom(node.attr[source])
        self._created[new.name] = new
        if has_value:
            handle = self._base(_data(node)[0])
            self._read(node.name, handle, _element(node), [f"^{new.name}"])

    def _rewrite_user(self, node: pb.NodeDef) -> None:
        """Adds reads for an op of the written variables that it uses as values."""
        sources = map(parse_graph_input, _data(node))
        if not any(self._is_written(source.node) and self._is_memory(source) for source in sources):
            return
        if node.op in _READERS:
            handle, controls = self._handle(_data(node)[0])
            self._read(node.name, handle, _element(node), [*controls, *_controls(node)])
            return
        new = pb.NodeDef()
        new.CopyFrom(node)
        del new.input[:]
        new.input.extend(self._inputs(node, set()))
        self._created[node.name] = new

    def _inputs(self, node: pb.NodeDef, as_handles: set[int]) -> list[str]:
        """Returns a node's inputs: handles at given positions, values elsewhere, then the control inputs."""
        data, controls = _data(node), _controls(node)
        sources = [parse_graph_input(text) for text in data]
        taken = {
            position: self._handle(data[position])
            for position, source in enumerate(sources)
            if position in as_handles or (self._is_written(source.node) and self._is_memory(source))
        }
        # A node of a damaged graph may have no inputs at all, which is reported when it is imported.
        added = [after for position in sorted(as_handles & taken.keys()) for after in taken[position][1]]
        # The value is read after everything else that the op waits for.
        waits = [f"^{source.node}" for source in sources if not self._is_memory(source)]
        waits += [after for _, each in taken.values() for after in each]
        for position, (handle, after) in taken.items():
            if position in as_handles:
                data[position] = handle
            else:
                data[position] = f"{node.name}/read_{position}"
                moment = after if node.op in _MERGES else waits
                element = _element(self.needed[sources[position].node])
                self._read(data[position], handle, element, dict.fromkeys([*moment, *controls]))
        return [*data, *dict.fromkeys([*added, *controls])]

    def _is_memory(self, tensor: TensorName) -> bool:
        """Returns whether a tensor is a reference, or shares the memory of one."""
        seen: set[str] = set()
        node = self.needed.get(tensor.node)
        while node is not None and _shares_memory(node) and node.name not in seen:
            seen.add(node.name)
            tensor = parse_graph_input(_data(node)[0])
            node = self.needed.get(tensor.node)
        if node is None or not self._is_reference(node.name):
            return False
        if node.op in VARIABLES or (node.op in _FORWARDERS and node.op != "RefMerge"):
            return True
        op_def = op_defs.lookup(node.op)
        outputs = op_def.output_arg if op_def is not None else ()
        return tensor.position < len(outputs) and outputs[tensor.position].is_ref

    def _handle(self, text: str) -> tuple[str, list[str]]:
        """Returns the handle of a reference, and the nodes that must run before it is used."""
        node = self.needed.get(parse_graph_input(text).node)
        if node is None or node.op in VARIABLES or not self._is_pass_through(node):
            return self._base(text), []
        return self._base(text), [f"^{node.name}/write" if _twin(node.op) else f"^{node.name}"]

    def _base(self, text: str) -> str:
        """Returns the handle of a reference after all writes before it."""
        passed = []
        while (node := self.needed.get(parse_graph_input(text).node)) is not None:
            if node.op in VARIABLES:
                text = node.name + HANDLE
                break
            if not self._is_pass_through(node):
                break
            if node.name in self._bases:
                text = self._bases[node.name]
                break
            passed.append(node.name)
            self._bases[node.name] = text  # ends the search if writes form a cycle
            text = _data(node)[0]
        self._bases.update(dict.fromkeys(passed, text))
        return text

    def _forwards_memory(self, node: pb.NodeDef) -> bool:
        """Returns whether a node of control flow uses a written variable's memory, where its functions read it."""
        is_flow = node.op != _ALIAS and _shares_memory(node) and self._is_written(node.name)
        return is_flow and self._is_memory(parse_graph_input(_data(node)[0]))

    def _is_pass_through(self, node: pb.NodeDef) -> bool:
        """Returns whether a node's result and operand are references, and its handle is that of an earlier node."""
        return self._is_access(node) or (node.op == _ALIAS and self._is_memory(parse_graph_input(node.name)))

    def _is_access(self, node: pb.NodeDef) -> bool:
        """Returns whether a node returns its reference operand, but is not rewritten to forward a handle."""
        if not self._is_reference(node.name) or not any(True for _ in self._ref_positions(node)):
            return False
        return node.op not in _FORWARDERS or not self._is_written(node.name)

    def _read(self, name: str, handle: str, element: pb.DataType, controls: Iterable[str]) -> None:
        self._created[name] = pb.NodeDef(
            name=name, op="ReadVariableOp", input=[handle, *controls], attr={"dtype": of_type(element)}
        )


def _shares_memory(node: pb.NodeDef) -> bool:
    """Returns whether a node returns the memory of its operand."""
    return bool(_data(node)) and (node.op in _ALIASES or (node.op == "Enter" and node.attr["is_constant"].b))


def _data(node: pb.NodeDef) -> list[str]:
    return [text for text in node.input if not text.startswith("^")]


def _controls(node: pb.NodeDef) -> list[str]:
    return [text for text in node.input if text.startswith("^")]


def _element(node: pb.NodeDef) -> pb.DataType:
    return node.attr["T" if "T" in node.attr else "dtype"].type
