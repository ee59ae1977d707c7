"""A module of `tfl` ops as a .tflite file.

Functions that are entry points become subgraphs first, in the module's order, then their callees. An entry
function has the names of its tensors in its attributes (`tf.entry_function`) and its signatures
(`tf_saved_model.exported_names`); its arguments and results have their names in the signatures
(`tf_saved_model.index_path`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tfconvert.exporters.tflite.file import LARGE, TFLiteFile
from tfconvert.exporters.tflite.operators import OperatorCodes
from tfconvert.exporters.tflite.subgraph import USERS, ExportState, Names, Naming, SubgraphWriter, symbol_name
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects import tfl_file
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, EXPORTED_NAMES, entry_names, index_path
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.arena import schedule_of
from tfconvert.schema.tflite.compiled_model import Table, compiled_model_note
from tfconvert.schema.tflite.tables import CONVERSION_METADATA
from tfconvert.schema.tflite.versions import minimum_runtime
from tfconvert.schema.tflite.writer import encode

MIN_RUNTIME_VERSION = "min_runtime_version"
CONVERSION = "CONVERSION_METADATA"
REDUCED_PRECISION = "reduced_precision_support"

API_VERSION = 2


class Origin(NamedTuple):
    """The origin of a model and the options of its conversion."""

    model_type: str = "TF_SAVED_MODEL"  # Enumerator of `ModelType`: the converter's input.
    tensorflow_version: str = ""  # The version of TensorFlow that created the model; empty if unknown.
    optimizations: tuple[str, ...] = ()  # Enumerators of `ModelOptimizationMode` that were applied.
    allow_custom_ops: bool = False  # Whether custom operators were allowed.
    enable_select_tf_ops: bool = False  # Whether TensorFlow's own kernels were allowed.
    force_select_tf_ops: bool = False  # Whether no other operators were allowed.
    api_version: int = API_VERSION  # The generation of the converter's interface.


def runtime_entry(uses: Iterable[tuple[str, int]]) -> bytes:
    """Returns the metadata entry of the runtime that a model requires, 16 bytes.

    Args:
        uses: Operators with their versions.
    """
    return minimum_runtime(uses).encode().ljust(16, b"\0")


def conversion_entry(origin: Origin) -> bytes:
    """Returns the metadata entry of how a model was created, a flatbuffer of its own."""
    environment: dict[str, Any] = {"api_version": origin.api_version, "model_type": origin.model_type}
    if origin.tensorflow_version:
        environment["tensorflow_version"] = origin.tensorflow_version
    options = {
        "model_optimization_modes": origin.optimizations,
        "allow_custom_ops": origin.allow_custom_ops,
        "enable_select_tf_ops": origin.enable_select_tf_ops,
        "force_select_tf_ops": origin.force_select_tf_ops,
    }
    return bytes(encode(CONVERSION_METADATA, {"environment": environment, "options": options}).data)


__all__ = ["TFLiteFile", "export"]

SCHEMA_VERSION = 3

DESCRIPTION = "tfconvert"
"""Description of a file that has no other."""

MODEL_METADATA = "TFLITE_METADATA"
"""Name of the metadata entry that describes inputs and outputs."""

MAIN = "main"
"""Name of the only entry point's subgraph."""


class Port(NamedTuple):
    """An input or output of a subgraph."""

    name: str  # Its name in the signature, else its tensor's.
    tensor: str  # Its tensor's name.
    type: str  # Enumerator of `TensorType`.
    shape: tuple[int, ...]  # Its dimensions, -1 where unknown.


class Ports(NamedTuple):
    """The inputs and outputs of a subgraph that is called from outside, in order."""

    inputs: Sequence[Port]
    outputs: Sequence[Port]


class ModelDescription(NamedTuple):
    """The description of inputs and outputs: its metadata entry, and the archive of files that it names."""

    entry: bytes = b""
    archive: bytes = b""


Describe = Callable[[Sequence[Ports], ModelDescription], ModelDescription]
"""Returns the description of subgraphs, given the one of the file that the module represents."""


class Place(NamedTuple):
    """The location of a value in a file."""

    subgraph: int  # Index of the subgraph.
    tensor: int  # Index of the tensor.
    name: str  # The tensor's name, which no other tensor of the file has.


class _Exporter:
    """Assigns subgraphs to functions as they are encountered."""

    def __init__(self, module: ModuleOp, *, restate: bool, target: str, naming: Naming) -> None:
        self.functions = functions_of(module)
        self.exact = tfl_file.is_image(module)
        versions = tfl_file.numbers(module.attributes.get(tfl_file.OPERATOR_VERSIONS))
        self.shared = ExportState(versions, are_minimums=restate, target=target, naming=naming)
        self.subgraphs: list[SubgraphWriter] = []
        self._indices: dict[str, int] = {}
        self._names = Names()
        self._built = 0

    def entries(self) -> list[str]:
        """Returns the names of the entry functions.

        Raises:
            ConversionError: The module has no function.
        """
        if self.exact and self.functions:
            return list(self.functions)
        marked = [
            name
            for name, function in self.functions.items()
            if ENTRY_FUNCTION in function.attributes or EXPORTED_NAMES in function.attributes
        ]
        if marked:
            return marked
        if not self.functions:
            raise error("invalid-module", "the module has no function to export")
        return [MAIN if MAIN in self.functions else next(iter(self.functions))]

    def index(self, name: str, alone: bool = False, caller: SubgraphWriter | None = None) -> int:
        """Returns the index of a function's subgraph, which is built later if it is not there yet.

        Args:
            name: The function.
            alone: Whether nothing else may call the subgraph.
            caller: The subgraph that calls it.

        Raises:
            ConversionError: The module has no such function (`invalid-module`), or it calls itself
                (`recursive-function`).
        """
        index = self._indices.get(name)
        if index is None or (alone and not self.exact):
            function = self.functions.get(name)
            if function is None:
                raise error("invalid-module", f"function @{name} is called, but the module does not have it")
            _check_depth(function, caller)
            index = len(self.subgraphs)
            self._indices.setdefault(name, index)
            self.subgraphs.append(SubgraphWriter(self.shared, function, self._names.unique(name), caller, self.exact))
        return index

    def build(self) -> None:
        """Fills all subgraphs; called ones join the list as it is processed.

        Raises:
            ConversionError: The module holds something that the file can't, or that the target doesn't have.
        """
        named, names = 0, entry_names if self.exact else self.shared.naming.ports
        while self._built < len(self.subgraphs):
            # The entry functions come first, so that their callees don't take the name of one of their inputs.
            for subgraph in self.subgraphs[named:]:
                subgraph.reserve(*(names(subgraph.function, which) for which in ("inputs", "outputs")))
            named = len(self.subgraphs)
            subgraph = self.subgraphs[self._built]
            called = partial(self.index, caller=subgraph)
            subgraph.build(names(subgraph.function, "outputs"), called)
            self._built += 1
        if problems := [*self.shared.problems, *self.shared.codes.newer()]:
            raise ConversionError(problems)

    def name_subgraphs(self, entries: Sequence[str]) -> None:
        """Assigns the subgraphs' names in the file."""
        if len(entries) == 1 and not self.exact:
            self.subgraphs[0].name = MAIN
        for subgraph in self.subgraphs:
            name = subgraph.function.attributes.get(tfl_file.SUBGRAPH_NAME) if self.exact else None
            if isinstance(name, StringAttr):
                subgraph.name = name.data


def _check_depth(function: FuncOp, caller: SubgraphWriter | None) -> None:
    """Checks that no function is recursive."""
    while caller is not None:
        if caller.function is function:
            raise error(
                "recursive-function",
                f"the function {symbol_name(function)!r} calls itself",
                hint="LiteRT does not support recursion; write it as a loop",
            )
        caller = caller.caller


def _strings(value: Attribute | None) -> list[str]:
    return [item.data for item in value.data if isinstance(item, StringAttr)] if isinstance(value, ArrayAttr) else []


def _maps(subgraph: SubgraphWriter, tensors: Sequence[int], attributes: Attribute | None) -> list[dict[str, Any]]:
    return [
        {"name": index_path(attributes, position) or subgraph.signature_name(tensor), "tensor_index": tensor}
        for position, tensor in enumerate(tensors)
    ]


def _signatures(exporter: _Exporter, entries: Sequence[str]) -> list[dict[str, Any]]:
    result = []
    for name in entries:
        function, index = exporter.functions[name], exporter.index(name)
        subgraph = exporter.subgraphs[index]
        inputs = _maps(subgraph, subgraph.inputs, function.arg_attrs)
        outputs = _maps(subgraph, subgraph.outputs, function.res_attrs)
        result += [
            {"inputs": inputs, "outputs": outputs, "signature_key": key, "subgraph_index": index}
            for key in _strings(function.attributes.get(EXPORTED_NAMES))
        ]
        for item in tfl_file.dictionaries(function.attributes.get(tfl_file.SIGNATURE_DEFS)):
            fields = tfl_file.from_dictionary("SignatureDef", item)
            for which, tensors in (("inputs", subgraph.inputs), ("outputs", subgraph.outputs)):
                fields[which] = [
                    {**entry, "tensor_index": tensors[entry["tensor_index"]]}
                    for entry in fields.get(which, ())
                    if entry.get("tensor_index", -1) in range(len(tensors))
                ]
            result.append({**fields, "subgraph_index": index})
    return result


def _ports(exporter: _Exporter, name: str) -> Ports:
    """Returns the inputs and outputs of an entry function."""
    function, subgraph = exporter.functions[name], exporter.subgraphs[exporter.index(name)]
    tensors = subgraph.tree()["tensors"]
    return Ports(
        *(
            [
                Port(
                    entry["name"],
                    tensor["name"],
                    tensor["type"],
                    tensor.get("shape_signature", tensor.get("shape", ())),
                )
                for entry in _maps(subgraph, indices, attributes)
                for tensor in (tensors[entry["tensor_index"]],)
            ]
            for indices, attributes in ((subgraph.inputs, function.arg_attrs), (subgraph.outputs, function.res_attrs))
        )
    )


def _description(module: ModuleOp) -> str:
    own = module.attributes.get(tfl_file.DESCRIPTION)
    return own.data if isinstance(own, StringAttr) else DESCRIPTION


def _metadata(module: ModuleOp, codes: OperatorCodes, origin: Origin | None, restate: bool) -> dict[str, bytes]:
    """Returns the metadata entries: those of the file that the module represents, else new ones."""
    if tfl_file.is_image(module):
        carried = module.attributes.get(tfl_file.METADATA)
        items = carried.data.items() if isinstance(carried, DictionaryAttr) else ()
        own = {name: tfl_file.content_of(value) for name, value in items}
        needed = runtime_entry(codes.uses()) if restate else b""
        return {**own, MIN_RUNTIME_VERSION: needed} if needed.strip(b"\0") else own
    entries = {MIN_RUNTIME_VERSION: runtime_entry(codes.uses())}
    precision = module.attributes.get(tfl_file.REDUCED_PRECISION)
    if isinstance(precision, StringAttr):
        entries[REDUCED_PRECISION] = precision.data.encode()
    if origin is not None:
        entries[CONVERSION] = conversion_entry(origin)
    return entries


def export(
    module: ModuleOp,
    *,
    description: str | None = None,
    origin: Origin | None = None,
    metadata: Mapping[str, bytes] | None = None,
    large: int = LARGE,
    places: dict[Value, Place] | None = None,
    restate: bool = False,
    describe: Describe | None = None,
    target_runtime: str = "",
    naming: Naming = USERS,
) -> TFLiteFile:
    """Builds the tables of a .tflite file; weights are read when it is written.

    Args:
        module: Functions of `tfl` ops.
        description: The file's description; `None` for the module's own, or `tfconvert` if it has none.
        origin: How the model was created, for its metadata; `None` leaves that entry out.
        metadata: Further entries.
        large: Size in bytes from which on the file has the form for large files.
        places: Records the tensor of each value.
        restate: Whether operators of an imported file get the versions that their calls require if it states lower
            ones.
        describe: Returns the description of inputs and outputs.
        target_runtime: The release of the runtime that has to run the file; any if empty.
        naming: How tensors are named.
    """
    exporter = _Exporter(module, restate=restate, target=target_runtime, naming=naming)
    entries = exporter.entries()
    for name in entries:
        exporter.index(name)
    exporter.build()
    if places is not None:
        for number, subgraph in enumerate(exporter.subgraphs):
            places.update({value: Place(number, *tensor) for value, tensor in subgraph.places()})
    shared = exporter.shared
    exporter.name_subgraphs(entries)
    entries_of_metadata = {**_metadata(module, shared.codes, origin, restate), **(metadata or {})}
    archive = tfl_file.content_of(module.attributes[tfl_file.ARCHIVE]) if tfl_file.ARCHIVE in module.attributes else b""
    if describe is not None:
        own = ModelDescription(entries_of_metadata.get(MODEL_METADATA, b""), archive)
        entries_of_metadata[MODEL_METADATA], archive = describe([_ports(exporter, name) for name in entries], own)
    model = {
        **tfl_file.from_dictionary("Model", module.attributes.get(tfl_file.EXTERNAL_BUFFERS)),
        "version": SCHEMA_VERSION,
        "operator_codes": shared.codes.trees(),
        "subgraphs": [subgraph.tree() for subgraph in exporter.subgraphs],
        "description": _description(module) if description is None else description,
        "metadata": [
            {"name": name, "buffer": shared.buffers.add_bytes(content)} for name, content in entries_of_metadata.items()
        ],
    }
    signatures = _signatures(exporter, entries)
    if signatures:
        model["signature_defs"] = signatures
    file = _measured(TFLiteFile(model, shared.buffers.entries, large, archive), shared)
    file.arena = schedule_of(model["subgraphs"][0], _is_constant).arena()
    note = compiled_model_note(model["subgraphs"], shared.codes.names())
    file.notes += [] if note is None else [note]
    return file


def _is_constant(tensor: Table) -> bool:
    """Returns whether a tensor's value is in the file, or beside it."""
    assert isinstance(tensor, dict)
    return bool(tensor.get("buffer") or tensor.get("external_buffer"))


def _measured(file: TFLiteFile, shared: ExportState) -> TFLiteFile:
    """Notes in a file which operators it has."""
    file.operators.update(shared.codes.calls)
    file.bytes_by_operator.update(shared.bytes_by_operator)
    file.versions.update(shared.codes.versions())
    file.custom_operators.update(shared.codes.to_register())
    file.min_runtime_version = minimum_runtime(shared.codes.uses())
    return file
