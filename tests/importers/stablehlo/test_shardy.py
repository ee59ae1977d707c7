"""Shardings of one device change nothing, in text and in artifacts; those of several devices are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.from_stablehlo.programs import convert
from tests.support.litert import run
from tfconvert.schema.diagnostics import ConversionError

KIND = "tensor<4x8xf32>"

TEXT = """module {
  sdy.mesh @mesh = <["x"=1, "y"=1], device_ids=[0]>
  func.func @main(%arg0: KIND {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> KIND {
    %a = sdy.sharding_constraint %arg0 <@mesh, [{"x", ?}, {"y":(1)1}p1], replicated={}> : KIND
    %b = sdy.propagation_barrier %a allowed_direction=NONE : KIND
    %c = sdy.reshard %b <@mesh, [{}, {}]> : KIND
    sdy.sharding_group %c group_id=32 : KIND
    %d = sdy.all_gather [{}, {"x"}] %c out_sharding=<@mesh, [{}, {}]> : KIND
    %e = sdy.all_to_all [{"x"}: 0->1] %d out_sharding=<@mesh, [{}, {}]> : KIND
    %f = sdy.all_reduce {"x"} %e out_sharding=<@mesh, [{}, {}]> : KIND
    %k = sdy.constant dense<2.0> : KIND
    %g:2 = sdy.manual_computation(%f, %k) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>]
        out_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>] manual_axes={"x"} (%arg1: KIND, %arg2: KIND) {
      %h = sdy.named_computation<"foo">(%arg1) (%arg3: KIND) {
        %t = stablehlo.tanh %arg3 : KIND
        sdy.return %t : KIND
      } : (KIND) -> KIND
      %1 = stablehlo.add %h, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : KIND
      sdy.return %1, %h : KIND, KIND
    } : (KIND, KIND) -> (KIND, KIND)
    %r = "sdy.sharding_constraint"(%g#0) <{sharding = #sdy.sharding<mesh<["q"=1]>, [{}, {}]>}> : (KIND) -> KIND
    return %r : KIND
  }
}
""".replace("KIND", KIND)


def test_ops_of_one_device_are_their_operands() -> None:
    x = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
    (found,) = run(convert(TEXT), [x])
    np.testing.assert_allclose(found, np.tanh(x) + 2, rtol=1e-5)


@pytest.mark.parametrize(("axis", "devices"), [('"x"=1', 6), ('"y"=1', 6), ('"q"=1', 6)])
def test_meshes_of_several_devices_are_refused(axis: str, devices: int) -> None:
    with pytest.raises(ConversionError, match=f"for {devices} devices") as caught:
        convert(TEXT.replace(axis, axis.replace("=1", f"={devices}")))
    assert caught.value.code == "unsupported-artifact"


def _functions() -> dict[str, tuple[Any, list[Any]]]:
    """Returns functions of JAX whose modules have ops of Shardy, and their arguments."""
    jax = pytest.importorskip("jax")
    from jax.sharding import AxisType, NamedSharding, PartitionSpec  # only where JAX is installed

    sharding = NamedSharding(jax.make_mesh((1,), ("b",), axis_types=(AxisType.Auto,)), PartitionSpec("b"))
    x = jax.ShapeDtypeStruct((4, 8), "float32")

    def constrained(x: Any) -> Any:
        return jax.lax.with_sharding_constraint(jax.numpy.tanh(x), sharding)

    def keyed(key: Any, x: Any) -> Any:
        return x + jax.random.normal(jax.random.fold_in(key, 1), x.shape)

    return {
        "constraint": (jax.jit(constrained), [x]),
        "arguments": (jax.jit(jax.numpy.tanh, in_shardings=sharding), [x]),
        "key": (jax.jit(keyed), [jax.ShapeDtypeStruct((), jax.random.key(0).dtype), x]),
    }


@pytest.mark.parametrize("way", ["exported", "file", "arguments", "lowered", "text"])
@pytest.mark.parametrize("name", ["arguments", "constraint", "key"])
def test_functions_of_jax_for_one_device_come_in(name: str, way: str, tmp_path: Path) -> None:
    function, arguments = _functions()[name]
    from jax import export  # only where JAX is installed

    exported = export.export(function)(*arguments)
    assert "sdy.mesh" in exported.mlir_module()
    if way == "file":
        path = tmp_path / "f.bin"
        path.write_bytes(exported.serialize())
    else:
        path = tmp_path / "f.mlir"
        path.write_text(exported.mlir_module(), "utf-8")
    if way == "arguments":
        model = tfconvert.convert(function, args=arguments)
    else:
        model = tfconvert.convert({"exported": exported, "lowered": function.lower(*arguments)}.get(way, path))
    values: list[Any] = [np.array([1, 2], np.uint32)] if name == "key" else []
    values.append(np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8))
    import jax  # only where JAX is installed

    inputs = [jax.random.wrap_key_data(values[0]), values[1]] if name == "key" else values
    np.testing.assert_allclose(run(bytes(model), values)[0], function(*inputs), rtol=1e-4, atol=1e-5)
