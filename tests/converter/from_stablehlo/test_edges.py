"""Padding with a tensor's own rows, as JAX writes it: one gather for each dimension."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converter.from_stablehlo.programs import convert, operators, program, results

X = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
KIND = "tensor<4x3x2xf32>"


def _mirrored(axis: int, first: tuple[int, int], last: tuple[int, int]) -> str:
    """Returns ops that join the reverse of a part, the tensor, and the reverse of a part of that."""
    sizes = [4, 3, 2]
    lines, x, kind = [], "%a", KIND
    for step, (begin, end) in enumerate((first, last)):
        bounds = ", ".join(f"{begin}:{end}" if at == axis else f"0:{size}" for at, size in enumerate(sizes))
        part = "x".join(str(end - begin if at == axis else size) for at, size in enumerate(sizes))
        sizes[axis] += end - begin
        whole = f"tensor<{'x'.join(map(str, sizes))}xf32>"
        operands, kinds = [f"%r{step}", x], [f"tensor<{part}xf32>", kind]
        order = slice(None, None, -1 if step else 1)
        lines += [
            f"%s{step} = stablehlo.slice {x} [{bounds}] : ({kind}) -> tensor<{part}xf32>",
            f"%r{step} = stablehlo.reverse %s{step}, dims = [{axis}] : tensor<{part}xf32>",
            f"%c{step} = stablehlo.concatenate {', '.join(operands[order])}, dim = {axis} "
            f": ({', '.join(kinds[order])}) -> {whole}",
        ]
        x, kind = f"%c{step}", whole
    return program("\n".join([*lines, f"return {x} : {kind}"]), [KIND], [kind])


@pytest.mark.parametrize(
    ("text", "pads", "mode"),
    [
        (_mirrored(0, (1, 3), (3, 5)), ((2, 2), (0, 0), (0, 0)), "reflect"),
        (_mirrored(0, (1, 2), (3, 4)), ((1, 1), (0, 0), (0, 0)), "reflect"),
        (_mirrored(1, (0, 2), (3, 5)), ((0, 0), (2, 2), (0, 0)), "symmetric"),
    ],
    ids=["reflect", "reflect one row", "symmetric"],
)
def test_mirrored_edges_are_one_gather(text: str, pads: tuple[tuple[int, int], ...], mode: str) -> None:
    assert operators(convert(text)) == {"GATHER": 1}
    assert np.array_equal(results(text, X)[0], np.pad(X, pads, mode))  # type: ignore[call-overload]


def test_edges_of_the_last_dimension_are_slices() -> None:
    text = _mirrored(2, (0, 2), (2, 4))
    assert "GATHER" not in operators(convert(text))
    assert np.array_equal(results(text, X)[0], np.pad(X, ((0, 0), (0, 0), (2, 2)), "symmetric"))


def test_slices_that_change_places_stay_slices() -> None:
    first, last = "tensor<1x3x2xf32>", "tensor<3x3x2xf32>"
    body = f"""    %0 = stablehlo.slice %a [0:1, 0:3, 0:2] : ({KIND}) -> {first}
    %1 = stablehlo.slice %a [1:4, 0:3, 0:2] : ({KIND}) -> {last}
    %2 = stablehlo.concatenate %1, %0, dim = 0 : ({last}, {first}) -> {KIND}
    return %2 : {KIND}"""
    text = program(body, [KIND], [KIND])
    assert operators(convert(text)) == {"SLICE": 2, "CONCATENATION": 1}
    assert np.array_equal(results(text, X)[0], np.roll(X, -1, 0))


def test_other_tensors_are_joined_as_they_are() -> None:
    part, whole = "tensor<1x3x2xf32>", "tensor<5x3x2xf32>"
    body = f"""    %0 = stablehlo.negate %a : {KIND}
    %1 = stablehlo.slice %0 [0:1, 0:3, 0:2] : ({KIND}) -> {part}
    %2 = stablehlo.concatenate %1, %a, dim = 0 : ({part}, {KIND}) -> {whole}
    return %2 : {whole}"""
    text = program(body, [KIND], [whole])
    assert "CONCATENATION" in operators(convert(text))
    assert np.array_equal(results(text, X)[0], np.concatenate([-X[:1], X]))
