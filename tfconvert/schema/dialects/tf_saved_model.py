"""The `tf_saved_model` dialect: the contents of a SavedModel other than functions.

A variable is a `global_tensor`, a vocabulary file an `asset`; a `session_initializer` names the functions that run
once, before anything else. Exported functions carry `tf_saved_model.exported_names`, their arguments and results
`tf_saved_model.index_path`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tensor_data import Constant
from tfconvert.schema.ir.attribute import Attribute, Type
from tfconvert.schema.ir.attributes import UNIT, ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.traits import Trait

SEMANTICS = "tf_saved_model.semantics"
EXPORTED_NAMES = "tf_saved_model.exported_names"
OTHER_NAMES = "tfconvert.other_names"
"""Of a function: other names under which the model exports it, which the result doesn't have."""
INDEX_PATH = "tf_saved_model.index_path"
BOUND_INPUT = "tf_saved_model.bound_input"
"""Of an argument: the symbol of its variable or asset."""
ENTRY_FUNCTION = "tf.entry_function"


def entry_names(function: FuncOp, which: str) -> list[str]:
    """Returns the names of an entry function's tensors; there may be too few of them.

    Args:
        function: The function.
        which: `inputs` or `outputs`.
    """
    entry = function.attributes.get(ENTRY_FUNCTION)
    names = entry.data.get(which) if isinstance(entry, DictionaryAttr) else None
    return names.data.split(",") if isinstance(names, StringAttr) and names.data else []


def index_path(attributes: Attribute | None, position: int) -> str | None:
    """Returns an argument's or a result's name in the signature, which may be empty; `None` if it has none.

    Args:
        attributes: The function's attributes of arguments or of results.
        position: The index.
    """
    dictionaries = attributes.data if isinstance(attributes, ArrayAttr) else ()
    dictionary = dictionaries[position] if position < len(dictionaries) else None
    path = dictionary.data.get(INDEX_PATH) if isinstance(dictionary, DictionaryAttr) else None
    if not isinstance(path, ArrayAttr):
        return None
    parts = [
        str(part.value) if isinstance(part, IntegerAttr) else part.data
        for part in path.data
        if isinstance(part, IntegerAttr | StringAttr)
    ]
    return "/".join(parts)


def port_names(function: FuncOp, which: str) -> list[str]:
    """Returns names for an entry function's arguments or results: in the signature, else of tensors, else numbers.

    Args:
        function: The function.
        which: `inputs` or `outputs`.
    """
    is_input = which == "inputs"
    attributes = function.arg_attrs if is_input else function.res_attrs
    kinds = function.function_type.inputs if is_input else function.function_type.results
    known = entry_names(function, which)
    known += [""] * (len(kinds) - len(known))
    paths = [index_path(attributes, index) for index in range(len(kinds))]
    return [
        (name if path is None else path) or f"{which[:-1]}_{index}"
        for index, (path, name) in enumerate(zip(paths, known, strict=False))
    ]


def entry_attribute(inputs: Iterable[str], outputs: Iterable[str], controls: Iterable[str] = ()) -> DictionaryAttr:
    """Returns an entry function's attribute `ENTRY_FUNCTION`.

    Args:
        inputs: The names of its inputs; those without one get a number.
        outputs: The names of its outputs.
        controls: Nodes that must run.
    """
    listed = {
        "control_outputs": ",".join(controls),
        "inputs": _listed(inputs, "input"),
        "outputs": _listed(outputs, "output"),
    }
    return DictionaryAttr.get({key: attrs.string(value) for key, value in listed.items()})


def _listed(names: Iterable[str], what: str) -> str:
    """Returns names separated by commas, which are removed from the names; index paths have them unchanged."""
    return ",".join(name.replace(",", "_") or f"{what}_{index}" for index, name in enumerate(names))


def path_attributes(name: str) -> dict[str, Attribute]:
    """Returns the attributes of an argument or a result that has a name in a signature."""
    return {INDEX_PATH: ArrayAttr.get([attrs.string(name)])}


class GlobalTensorOp(Operation):
    """`tf_saved_model.global_tensor`: a variable with its value in the checkpoint."""

    __slots__ = ()

    NAME: ClassVar[str] = "tf_saved_model.global_tensor"
    PROPERTIES: ClassVar[tuple[str, ...]] = ("sym_name", "type", "value", "is_mutable")
    TRAITS: ClassVar[frozenset[Trait]] = frozenset({Trait.SYMBOL})

    @classmethod
    def build(
        cls, symbol: str, type: Attribute, value: Constant, *, is_mutable: bool, location: Location = UNKNOWN_LOC
    ) -> GlobalTensorOp:
        """Returns a global tensor; `type` may be less exact than the value's type (a dynamic dimension)."""
        assert isinstance(type, Type)
        properties: dict[str, Attribute] = {"sym_name": attrs.string(symbol), "type": type, "value": value}
        if is_mutable:
            properties["is_mutable"] = UNIT
        return cls.create(properties=properties, location=location)

    def verify_(self) -> None:
        _need_texts(self, "sym_name")
        if "type" not in self.properties:
            raise VerifyError(f"{self.NAME} needs the property 'type'")

    @property
    def sym_name(self) -> str:
        """The symbol that handles refer to."""
        name = self.properties["sym_name"]
        assert isinstance(name, StringAttr)
        return name.data


class AssetOp(Operation):
    """`tf_saved_model.asset`: a file of the SavedModel's `assets` directory."""

    __slots__ = ()

    NAME: ClassVar[str] = "tf_saved_model.asset"
    PROPERTIES: ClassVar[tuple[str, ...]] = ("sym_name", "filename")
    TRAITS: ClassVar[frozenset[Trait]] = frozenset({Trait.SYMBOL})

    @classmethod
    def build(cls, symbol: str, filename: str) -> AssetOp:
        """Returns an asset; `filename` is relative to the SavedModel's directory."""
        return cls.create(properties={"sym_name": attrs.string(symbol), "filename": attrs.string(filename)})

    def verify_(self) -> None:
        _need_texts(self, "sym_name", "filename")


def _need_texts(op: Operation, *names: str) -> None:
    for name in names:
        if not isinstance(op.properties.get(name), StringAttr):
            raise VerifyError(f"{op.name} needs the property {name!r}, a string")


class SessionInitializerOp(Operation):
    """`tf_saved_model.session_initializer`: functions to run once."""

    __slots__ = ()

    NAME: ClassVar[str] = "tf_saved_model.session_initializer"
    PROPERTIES: ClassVar[tuple[str, ...]] = ("initializers",)

    @classmethod
    def build(cls, functions: list[str]) -> SessionInitializerOp:
        return cls.create(properties={"initializers": ArrayAttr.get([attrs.symbol(name) for name in functions])})


def export_initializer(function: FuncOp) -> None:
    """Makes an initializer public, under its own name, like all functions of a SavedModel's module."""
    function.properties.pop("sym_visibility", None)
    function.attributes[EXPORTED_NAMES] = attrs.of([function.sym_name])


def hide_initializer(function: FuncOp) -> None:
    """Makes an initializer private, like the functions that a signature's function calls."""
    function.sym_visibility = "private"
    function.attributes.pop(EXPORTED_NAMES, None)


TF_SAVED_MODEL = Dialect("tf_saved_model", (GlobalTensorOp, AssetOp, SessionInitializerOp))
