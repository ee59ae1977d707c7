"""A .tflite file as a module: the reverse of the exporter.

Each subgraph is a function, each operator a `tfl` op, each constant a handle of its bytes in the mapped file. The
result is the *image* of the file (`tfconvert.schema.dialects.tfl_file`): exported again, it gives the same model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tfconvert.importers.tflite import operators
from tfconvert.importers.tflite.buffers import BufferReader, Content, content_of
from tfconvert.importers.tflite.operators import Code, Properties
from tfconvert.importers.tflite.subgraph import ImportState, SubgraphImporter
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tfl_file
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_saved_model import EXPORTED_NAMES, INDEX_PATH
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, IntegerAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite import associated_files
from tfconvert.schema.tflite.reader import Allowance, View, malformed, read_model
from tfconvert.schema.tflite.versions import newest_version

LOCATION_ENTRY = "buffer_location"
"""The metadata entry of large files, which the exporter creates itself where it is required."""

_BESIDE = ("external_buffer_groups", "external_buffers")

SCHEMA_VERSION = 3


def import_tflite(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> ModuleOp:
    """Returns the module of a .tflite file.

    Weights are neither read nor copied: the file must not change while the module is in use.

    Args:
        source: The file's path, or its bytes.
    """
    content = content_of(source)
    return _Importer(read_model(content.view, Allowance(len(content.view))), content).module()


def check_versions(module: ModuleOp) -> None:
    """Checks that the versions of a file's operators are known.

    Args:
        module: The imported module.

    Raises:
        ConversionError: One is newer (`malformed-tflite`).
    """
    versions = module.attributes.get(tfl_file.OPERATOR_VERSIONS)
    for name, version in (versions.data if isinstance(versions, DictionaryAttr) else {}).items():
        known = newest_version(name)
        if isinstance(version, IntegerAttr) and 0 < known < version.value:
            raise malformed(f"{name} has version {version.value}, the newest known version is {known}")


class _Importer:
    def __init__(self, model: View, content: Content) -> None:
        if model["version"] != SCHEMA_VERSION:
            raise malformed(f"the file has version {model['version']} of the format, not {SCHEMA_VERSION}")
        self._model = model
        self._views: list[View] = model["subgraphs"] or []
        if not self._views:
            raise malformed("the file has no subgraph")
        self._symbols = _symbols(self._views)
        self._codes = [operators.code(view) for view in model["operator_codes"] or ()]
        self._buffers = BufferReader(model, content)

    def module(self) -> ModuleOp:
        shared = ImportState(self._buffers, self._codes, Properties(self._buffers, self._symbols), {})
        signatures = self._signatures()
        functions: list[FuncOp] = []
        calls: list[set[int]] = []
        for index, (view, symbol) in enumerate(zip(self._views, self._symbols, strict=True)):
            subgraph = SubgraphImporter(shared, view, symbol)
            function = subgraph.build(is_entry=index == 0 or index in signatures)
            _sign(function, subgraph, signatures.get(index, ()))
            functions.append(function)
            calls.append(subgraph.calls)
        _check_calls(calls, self._symbols)
        return ModuleOp.of(functions, self._attributes(shared.versions))

    def _signatures(self) -> dict[int, list[View]]:
        """Returns the signatures by subgraph."""
        result: dict[int, list[View]] = {}
        for view in self._model["signature_defs"] or ():
            index = view["subgraph_index"]
            if index >= len(self._views):
                raise malformed(f"signature {view['signature_key']!r} refers to subgraph {index}, which does not exist")
            result.setdefault(index, []).append(view)
        return result

    def _attributes(self, needed: Mapping[str, int]) -> dict[str, Attribute]:
        """Returns the attributes of the model as a whole; `needed` are the versions that its calls require."""
        result: dict[str, Attribute] = {tfl_file.SCHEMA_VERSION: attrs.int32(SCHEMA_VERSION)}
        result[tfl_file.DESCRIPTION] = attrs.string(self._model["description"] or "")
        metadata = {
            view["name"] or "": tfl_file.text_or_bytes(self._buffers.data(view["buffer"]))
            for view in self._model["metadata"] or ()
            if view["name"] != LOCATION_ENTRY
        }
        if metadata:
            result[tfl_file.METADATA] = DictionaryAttr.get(metadata)
        archive = self._archive()
        if archive:
            result[tfl_file.ARCHIVE] = tfl_file.text_or_bytes(archive)
        versions = _versions(self._codes, needed)
        if versions:
            result[tfl_file.OPERATOR_VERSIONS] = DictionaryAttr.get(versions)
        beside = {name: [view.tree() for view in self._model[name]] for name in _BESIDE if self._model[name]}
        if any(max(item.get("offset", 0), item.get("length", 0)) >> 63 for items in beside.values() for item in items):
            raise malformed("an external buffer is larger than any memory")
        if beside:
            result[tfl_file.EXTERNAL_BUFFERS] = tfl_file.to_dictionary("Model", beside)
        return result

    def _archive(self) -> bytes:
        """Returns the archive of files after the tables, empty without one, or if it is the value of a constant."""
        content = self._buffers.content
        archive = associated_files.find(content.read, content.size)
        places = (self._buffers.place(index) for index in range(len(self._model["buffers"] or ())))
        end = max((start + length for start, length in places), default=0) if archive else 0
        return archive if end <= content.size - len(archive) else b""


def _versions(codes: Sequence[Code], needed: Mapping[str, int]) -> dict[str, Attribute]:
    """Returns the versions that differ from those that the calls require, the maximum of several."""
    versions: dict[str, int] = {}
    for code in codes:
        name = code.custom or code.name.upper()
        versions[name] = max(versions.get(name, 0), code.version)
    return {name: attrs.int32(version) for name, version in sorted(versions.items()) if version != needed.get(name, 1)}


def _symbols(views: Sequence[View]) -> list[str]:
    """Returns a symbol for each subgraph: its name, unless that is empty or not unique."""
    taken: set[str] = set()
    symbols = []
    for index, view in enumerate(views):
        wanted = view["name"] or ("main" if index == 0 else f"subgraph_{index}")
        symbol, number = wanted, index
        while symbol in taken:
            symbol, number = f"{wanted}_{number}", number + 1
        taken.add(symbol)
        symbols.append(symbol)
    return symbols


def _check_calls(calls: Sequence[set[int]], symbols: Sequence[str]) -> None:
    """Rejects recursive calls between subgraphs, which would never terminate."""
    waiting = [0] * len(calls)
    for called in calls:
        for index in called:
            waiting[index] += 1
    ready = [index for index, count in enumerate(waiting) if not count]
    done = 0
    while ready:
        done += 1
        for index in calls[ready.pop()]:
            waiting[index] -= 1
            if not waiting[index]:
                ready.append(index)
    if done < len(calls):
        names = ", ".join(repr(symbol) for symbol, count in zip(symbols, waiting, strict=True) if count)
        raise malformed(f"subgraphs call each other in a cycle: {names}")


def _sign(function: FuncOp, subgraph: SubgraphImporter, signatures: Sequence[View]) -> None:
    """Records the signatures of a function: as index paths if all agree on the names, else one by one."""
    maps = [tuple(_names(view, which, tensors) for which, tensors in _sides(subgraph)) for view in signatures]
    keys = [view["signature_key"] or "" for view in signatures]
    if not maps:
        return
    simple = [_by_position(pairs, len(tensors)) for pairs, (_, tensors) in zip(maps[0], _sides(subgraph), strict=True)]
    if all(entry == maps[0] for entry in maps) and None not in simple:
        function.attributes[EXPORTED_NAMES] = ArrayAttr.get(map(attrs.string, keys))
        function.arg_attrs = _with_paths(function.arg_attrs, simple[0] or [])
        function.res_attrs = _with_paths(function.res_attrs, simple[1] or [])
        return
    items = [
        {
            "signature_key": key,
            **{
                which: [{"name": name, "tensor_index": position} for position, name in pairs]
                for which, pairs in zip(("inputs", "outputs"), entry, strict=True)
            },
        }
        for key, entry in zip(keys, maps, strict=True)
    ]
    function.attributes[tfl_file.SIGNATURE_DEFS] = ArrayAttr.get(
        [tfl_file.to_dictionary("SignatureDef", item) for item in items]
    )


def _sides(subgraph: SubgraphImporter) -> tuple[tuple[str, list[int]], tuple[str, list[int]]]:
    return ("inputs", subgraph.inputs), ("outputs", subgraph.outputs)


def _names(view: View, which: str, tensors: Sequence[int]) -> list[tuple[int, str]]:
    """Returns the names that a signature gives to inputs or outputs, with their positions, in their order.

    A tensor that is returned twice, under two names, has each name once.
    """
    positions: dict[int, list[int]] = {}
    for position, tensor in enumerate(tensors):
        positions.setdefault(tensor, []).append(position)
    pairs: list[tuple[int, str]] = []
    used: dict[int, int] = {}
    for item in view[which] or ():
        tensor = item["tensor_index"]
        if tensor not in positions:
            raise malformed(f"a signature names tensor {tensor}, which is not one of its subgraph's {which}")
        count = used[tensor] = used.get(tensor, 0) + 1
        pairs.append((positions[tensor][min(count, len(positions[tensor])) - 1], item["name"] or ""))
    return sorted(pairs)


def _by_position(pairs: Sequence[tuple[int, str]], count: int) -> list[str] | None:
    """Returns one name for each position, or `None` if there are several or none."""
    names = [name for _, name in pairs]
    complete = [position for position, _ in pairs] == list(range(count))
    return names if complete and all(names) else None


def _with_paths(attributes: Any, names: Sequence[str]) -> ArrayAttr | None:
    """Returns the attributes of arguments or results with their index paths."""
    known = attributes.data if isinstance(attributes, ArrayAttr) else [DictionaryAttr.get({})] * len(names)
    items = [
        DictionaryAttr.get({INDEX_PATH: ArrayAttr.get([attrs.string(name)]), **item.data})
        for item, name in zip(known, names, strict=True)
        if isinstance(item, DictionaryAttr)
    ]
    return ArrayAttr.get(items) if items else None
