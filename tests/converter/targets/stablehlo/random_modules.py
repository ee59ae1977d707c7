"""Random StableHLO modules with dynamic sizes, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

_UNARY = ("tanh", "negate", "abs", "sine", "logistic", "floor")
_BINARY = ("add", "multiply", "subtract", "maximum", "minimum")


class _Tensor(NamedTuple):
    """A value of rank 2 and its sizes: numbers, or symbols of equal sizes."""

    name: str
    dims: tuple[str, str]

    @property
    def kind(self) -> str:
        """Its type."""
        sizes = [dim if dim.isdigit() else "?" for dim in self.dims]
        return f"tensor<{sizes[0]}x{sizes[1]}xf32>"


class Module:
    """Writes a module, op by op."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._lines: list[str] = []
        self._count = 0
        self.values = [_Tensor("%x", ("n", "m")), _Tensor("%y", ("n", "m")), _Tensor("%z", ("m", "4"))]

    def text(self) -> str:
        """Returns the module: some ops, and some of the values as results."""
        steps: list[Callable[[], None]] = [
            self._unary,
            self._unary,
            self._unary,
            self._binary,
            self._binary,
            self._transpose,
            self._concatenate,
            self._soft,
            self._dot,
            self._reshape,
            self._half,
            self._pad,
            self._loop,
            self._constant,
        ]
        rare: list[Callable[[], None]] = [self._branch, self._counted]
        for _ in range(self._draw.randint(3, 10)):
            self._draw.choice(rare if self._draw.random() < 0.05 else steps)()
        results = [self._draw.choice(self.values) for _ in range(self._draw.randint(1, 3))]
        kinds = ", ".join(each.kind for each in results)
        body = "\n".join(f"  {line}" for line in self._lines)
        return (
            "func.func @main(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %z: tensor<?x4xf32>) -> "
            f"({kinds}) {{\n{body}\n  func.return {', '.join(each.name for each in results)} : {kinds}\n}}"
        )

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _write(self, op: str, operands: str, kinds: str, result: str) -> str:
        name = self._name()
        self._lines.append(f'{name} = "stablehlo.{op}"({operands}) {kinds} -> {result}')
        return name

    def _add(self, op: str, operands: str, kinds: str, dims: tuple[str, str]) -> None:
        new = _Tensor("", dims)
        self.values.append(_Tensor(self._write(op, operands, kinds, new.kind), dims))

    def _any(self) -> _Tensor:
        return self._draw.choice(self.values)

    def _like(self, fits: Callable[[_Tensor], bool]) -> _Tensor:
        return self._draw.choice([each for each in self.values if fits(each)])

    def _scalar(self, op: str, operands: str, kinds: str) -> str:
        return self._write(op, operands, kinds, "tensor<i32>")

    def _size(self, value: _Tensor, axis: int) -> str:
        return self._scalar("get_dimension_size", value.name, f"<{{dimension = {axis} : i64}}> : ({value.kind})")

    def _number(self, number: int) -> str:
        name = self._name()
        self._lines.append(f"{name} = stablehlo.constant dense<{number}> : tensor<i32>")
        return name

    def _vector(self, *scalars: str) -> str:
        parts = [self._write("reshape", each, ": (tensor<i32>)", "tensor<1xi32>") for each in scalars]
        kinds = ", ".join(["tensor<1xi32>"] * len(parts))
        return self._write(
            "concatenate", ", ".join(parts), f"<{{dimension = 0 : i64}}> : ({kinds})", f"tensor<{len(parts)}xi32>"
        )

    def _unary(self) -> None:
        x = self._any()
        self._add(self._draw.choice(_UNARY), x.name, f": ({x.kind})", x.dims)

    def _binary(self) -> None:
        x = self._any()
        y = self._like(lambda each: each.dims == x.dims)
        self._add(self._draw.choice(_BINARY), f"{x.name}, {y.name}", f": ({x.kind}, {y.kind})", x.dims)

    def _transpose(self) -> None:
        x = self._any()
        self._add("transpose", x.name, f"<{{permutation = array<i64: 1, 0>}}> : ({x.kind})", (x.dims[1], x.dims[0]))

    def _concatenate(self) -> None:
        x = self._any()
        y = self._like(lambda each: each.dims[0] == x.dims[0])
        sizes = (x.dims[1], y.dims[1])
        both = str(int(sizes[0]) + int(sizes[1])) if all(map(str.isdigit, sizes)) else f"({sizes[0]}+{sizes[1]})"
        self._add(
            "concatenate", f"{x.name}, {y.name}", f"<{{dimension = 1 : i64}}> : ({x.kind}, {y.kind})", (x.dims[0], both)
        )

    def _soft(self) -> None:
        """Adds `x - max(x)` of each row."""
        x = self._any()
        start = self._name()
        self._lines.append(f"{start} = stablehlo.constant dense<0xFF800000> : tensor<f32>")
        row = "?" if not x.dims[0].isdigit() else x.dims[0]
        most = self._write(
            "reduce",
            f"{x.name}, {start}",
            "<{dimensions = array<i64: 1>}> ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
            '    %c = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n'
            f'    "stablehlo.return"(%c) : (tensor<f32>) -> ()\n  }}) : ({x.kind}, tensor<f32>)',
            f"tensor<{row}xf32>",
        )
        sizes = self._vector(self._size(x, 0), self._size(x, 1))
        wide = self._write(
            "dynamic_broadcast_in_dim",
            f"{most}, {sizes}",
            f"<{{broadcast_dimensions = array<i64: 0>}}> : (tensor<{row}xf32>, tensor<2xi32>)",
            x.kind,
        )
        self._add("subtract", f"{x.name}, {wide}", f": ({x.kind}, {x.kind})", x.dims)

    def _dot(self) -> None:
        x = self._any()
        y = self._like(lambda each: each.dims[1] == x.dims[1])
        dims = "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>"
        self._add(
            "dot_general",
            f"{x.name}, {y.name}",
            f"<{{dot_dimension_numbers = {dims}}}> : ({x.kind}, {y.kind})",
            (x.dims[0], y.dims[0]),
        )

    def _reshape(self) -> None:
        """Adds the elements of a value in rows of the other length."""
        x = self._any()
        sizes = self._vector(self._size(x, 1), self._size(x, 0))
        self._add("dynamic_reshape", f"{x.name}, {sizes}", f": ({x.kind}, tensor<2xi32>)", (x.dims[1], x.dims[0]))

    def _half(self) -> None:
        """Adds the first half of the rows."""
        x = self._any()
        half = self._scalar("divide", f"{self._size(x, 0)}, {self._number(2)}", ": (tensor<i32>, tensor<i32>)")
        self._head(x, half, f"({x.dims[0]}/2)")

    def _head(self, x: _Tensor, rows: str, dim: str) -> None:
        zero, one = self._number(0), self._number(1)
        starts, steps = self._vector(zero, zero), self._vector(one, one)
        limits = self._vector(rows, self._size(x, 1))
        vectors = ", ".join(["tensor<2xi32>"] * 3)
        self._add(
            "real_dynamic_slice", f"{x.name}, {starts}, {limits}, {steps}", f": ({x.kind}, {vectors})", (dim, x.dims[1])
        )

    def _pad(self) -> None:
        x = self._any()
        name = self._name()
        self._lines.append(f"{name} = stablehlo.constant dense<1.5> : tensor<f32>")
        grown = str(int(x.dims[0]) + 3) if x.dims[0].isdigit() else f"({x.dims[0]}+3)"
        ends = {"edge_padding_low": "1, 0", "edge_padding_high": "2, 0", "interior_padding": "0, 0"}
        amounts = ", ".join(f"{key} = array<i64: {values}>" for key, values in ends.items())
        self._add("pad", f"{x.name}, {name}", f"<{{{amounts}}}> : ({x.kind}, tensor<f32>)", (grown, x.dims[1]))

    def _constant(self) -> None:
        name = self._name()
        rows = ", ".join(str([float(4 * row + column) / 8 for column in range(4)]) for row in range(5))
        self._lines.append(f"{name} = stablehlo.constant dense<[{rows}]> : tensor<5x4xf32>")
        self.values.append(_Tensor(name, ("5", "4")))

    def _loop(self) -> None:
        """Adds a loop of three rounds over a value."""
        x = self._any()
        first, most, one = self._number(0), self._number(3), self._number(1)
        name = self._name()
        self._lines.append(
            f'{name}:2 = "stablehlo.while"({first}, {x.name}) ({{\n  ^bb0(%i: tensor<i32>, %a: {x.kind}):\n'
            f'    %c = "stablehlo.compare"(%i, {most}) <{{comparison_direction = #stablehlo<comparison_direction LT>}}>'
            ' : (tensor<i32>, tensor<i32>) -> tensor<i1>\n    "stablehlo.return"(%c) : (tensor<i1>) -> ()\n  }, {\n'
            f'  ^bb0(%i: tensor<i32>, %a: {x.kind}):\n    %j = "stablehlo.add"(%i, {one}) : '
            f'(tensor<i32>, tensor<i32>) -> tensor<i32>\n    %b = "stablehlo.cosine"(%a) : ({x.kind}) -> {x.kind}\n'
            f'    %d = "stablehlo.add"(%b, {x.name}) : ({x.kind}, {x.kind}) -> {x.kind}\n'
            f'    "stablehlo.return"(%j, %d) : (tensor<i32>, {x.kind}) -> ()\n  }}) : (tensor<i32>, {x.kind}) -> '
            f"(tensor<i32>, {x.kind})"
        )
        self.values.append(_Tensor(f"{name}#1", x.dims))

    def _positive(self, x: _Tensor) -> str:
        """Returns how many elements of a value are positive."""
        zero = self._name()
        self._lines.append(f"{zero} = stablehlo.constant dense<0> : tensor<i32>")
        sign = self._write("sign", x.name, f": ({x.kind})", x.kind)
        whole = x.kind.replace("f32", "i32")
        signs = self._write("convert", sign, f": ({x.kind})", whole)
        return self._write(
            "reduce",
            f"{signs}, {zero}",
            "<{dimensions = array<i64: 0, 1>}> ({\n  ^bb0(%a: tensor<i32>, %b: tensor<i32>):\n"
            '    %c = "stablehlo.add"(%a, %b) : (tensor<i32>, tensor<i32>) -> tensor<i32>\n'
            f'    "stablehlo.return"(%c) : (tensor<i32>) -> ()\n  }}) : ({whole}, tensor<i32>)',
            "tensor<i32>",
        )

    def _branch(self) -> None:
        x = self._any()
        holds = self._write(
            "compare",
            f"{self._positive(x)}, {self._number(0)}",
            "<{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<i32>, tensor<i32>)",
            "tensor<i1>",
        )
        name = self._name()
        self._lines.append(
            f'{name} = "stablehlo.if"({holds}) ({{\n    %a = "stablehlo.tanh"({x.name}) : ({x.kind}) -> {x.kind}\n'
            f'    %b = "stablehlo.add"(%a, {x.name}) : ({x.kind}, {x.kind}) -> {x.kind}\n'
            f'    "stablehlo.return"(%b) : ({x.kind}) -> ()\n  }}, {{\n'
            f'    "stablehlo.return"({x.name}) : ({x.kind}) -> ()\n  }}) : (tensor<i1>) -> {x.kind}'
        )
        self.values.append(_Tensor(name, x.dims))

    def _counted(self) -> None:
        """Adds as many rows of a value as it has positive elements, but not more than it has."""
        x = self._any()
        count = self._scalar("maximum", f"{self._positive(x)}, {self._number(0)}", ": (tensor<i32>, tensor<i32>)")
        rows = self._scalar("minimum", f"{count}, {self._size(x, 0)}", ": (tensor<i32>, tensor<i32>)")
        self._head(x, rows, f"(rows of {x.name})")


def module_text(seed: int) -> str:
    """Returns the text of a random module."""
    return Module(seed).text()
