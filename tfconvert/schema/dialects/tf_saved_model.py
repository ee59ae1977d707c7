"""The `tf_saved_model` dialect: what a SavedModel holds beside its functions.

A variable is a `global_tensor`, a vocabulary file an `asset`; a `session_initializer` names the functions that run
once, before anything else. Exported functions carry `tf_saved_model.exported_names`, their arguments and results
`tf_saved_model.index_path`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, LocationAttr, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Dialect, Operation, OpTraits, TypeAttribute
from xdsl.traits import SymbolOpInterface

from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects.tensor_data import Constant

SEMANTICS = "tf_saved_model.semantics"
EXPORTED_NAMES = "tf_saved_model.exported_names"
INDEX_PATH = "tf_saved_model.index_path"
ENTRY_FUNCTION = "tf.entry_function"


class GlobalTensorOp(Operation):
    """`tf_saved_model.global_tensor`: a variable with its value in the checkpoint."""

    name = "tf_saved_model.global_tensor"
    traits = OpTraits(lambda: (SymbolOpInterface(),))

    @classmethod
    def build(
        cls, symbol: str, type: Attribute, value: Constant, *, is_mutable: bool, location: LocationAttr | None = None
    ) -> GlobalTensorOp:
        """Returns a global tensor; `type` may be less exact than the value's type (a dynamic dimension)."""
        assert isinstance(type, TypeAttribute)
        properties: dict[str, Attribute] = {"sym_name": attrs.string(symbol), "type": type, "value": value}
        if is_mutable:
            properties["is_mutable"] = UnitAttr()
        return cls.create(properties=properties, location=location)

    @property
    def sym_name(self) -> str:
        """The symbol that handles refer to."""
        name = self.properties["sym_name"]
        assert isinstance(name, StringAttr)
        return name.data


class AssetOp(Operation):
    """`tf_saved_model.asset`: a file of the SavedModel's `assets` folder."""

    name = "tf_saved_model.asset"
    traits = OpTraits(lambda: (SymbolOpInterface(),))

    @classmethod
    def build(cls, symbol: str, filename: str) -> AssetOp:
        """Returns an asset; `filename` is relative to the SavedModel's folder."""
        return cls.create(properties={"sym_name": attrs.string(symbol), "filename": attrs.string(filename)})


class SessionInitializerOp(Operation):
    """`tf_saved_model.session_initializer`: functions to run once."""

    name = "tf_saved_model.session_initializer"
    traits = OpTraits(lambda: ())

    @classmethod
    def build(cls, functions: list[str]) -> SessionInitializerOp:
        """Returns an initializer of functions by symbol."""
        return cls.create(properties={"initializers": ArrayAttr([attrs.symbol(name) for name in functions])})


def export_initializer(function: FuncOp) -> None:
    """Makes an initializer public, under its own name: so are all that a SavedModel's module has."""
    function.properties.pop("sym_visibility", None)
    function.attributes[EXPORTED_NAMES] = attrs.of([function.sym_name.data])


def hide_initializer(function: FuncOp) -> None:
    """Makes an initializer private, as the functions are that a signature's function calls."""
    function.sym_visibility = attrs.string("private")
    function.attributes.pop(EXPORTED_NAMES, None)


TF_SAVED_MODEL = Dialect("tf_saved_model", [GlobalTensorOp, AssetOp, SessionInitializerOp], [])
