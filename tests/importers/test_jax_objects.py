"""Functions of JAX in memory, without JAX: what is read of them, and how their inputs and outputs are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tfconvert.importers.jax_functions import NamedExport
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.dialects.tf_saved_model import port_names

TEXT = """
func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
  return %arg0, %arg1 : tensor<2xf32>, tensor<3xf32>
}
"""


class Tree:
    """A tree of JAX; lists have the numbers of leaves."""

    def __init__(self, leaves: int, tree: Any) -> None:
        self.num_leaves, self._tree = leaves, tree

    def unflatten(self, leaves: Sequence[int]) -> Any:
        assert list(leaves) == list(range(self.num_leaves))
        return self._tree


class Exported:
    """An exported function."""

    __module__ = "jax.export"

    def __init__(self, **changed: Any) -> None:
        stablehlo = pytest.importorskip("jaxlib.mlir.dialects.stablehlo")
        self.mlir_module_serialized = stablehlo.serialize_portable_artifact_str(TEXT, stablehlo.get_current_version())
        self.fun_name = "f"
        self.nr_devices = 1
        self.platforms = ("cpu",)
        self.module_kept_var_idx = (0, 2)
        # f({"a": 0, "b": 1}, scale=2) -> (0, {"y": 1})
        self.in_tree = Tree(3, (({"a": 0, "b": 1},), {"scale": 2}))
        self.out_tree = Tree(2, (0, {"y": 1}))
        vars(self).update(changed)


class Compiled:
    """Something else of JAX."""

    __module__ = "jax.stages"


def names_of(model: object, **selection: Any) -> tuple[list[str], list[str]]:
    main = functions_of(Source(model, **selection).open())["main"]
    return port_names(main, "inputs"), port_names(main, "outputs")


def test_names_are_those_of_the_trees() -> None:
    assert names_of(Exported()) == (["a", "scale"], ["result_0", "result_1_y"])
    assert names_of(Exported(), rename={"a": "image"})[0] == ["image", "scale"]


def test_leaves_in_other_containers_are_numbered() -> None:
    assert names_of(Exported(in_tree=Tree(3, object())))[0] == ["arg0", "arg2"]


def test_names_of_the_user() -> None:
    assert names_of(NamedExport(Exported(), ["x", "unused", "y"]))[0] == ["x", "y"]


@pytest.mark.parametrize(
    ("model", "selection", "code"),
    [
        (lambda: Exported(nr_devices=2), {}, "unsupported-artifact"),
        (Exported, {"tags": ["a"]}, "wrong-option"),
        (Compiled, {}, "unknown-format"),
    ],
    ids=["several devices", "tags", "another object"],
)
def test_functions_that_can_not_be_imported(model: Any, selection: dict[str, Any], code: str) -> None:
    with pytest.raises(ConversionError) as caught:
        Source(model(), **selection).open()
    assert caught.value.diagnostics[0].code == code


def test_signatures_of_several_keys() -> None:
    named = NamedExport(Exported(), keys=["serve", "serving_default"], names=())
    for wanted, keys in ((None, ["serving_default"]), (["serve"], ["serve"]), (["serving_default", "serve"],) * 2):
        main = functions_of(Source(named, signatures=wanted).open())["main"]
        assert main.attributes["tf_saved_model.exported_names"] == attrs.of(keys)


def test_functions_have_names() -> None:
    source = Source(Exported())
    assert not source.can_be_cut
    assert source.name == "the function f of JAX"
