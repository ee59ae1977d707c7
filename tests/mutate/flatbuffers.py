"""Changes .tflite files as trees of tables: any field of any table."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from tests.mutate import numbers
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER, read_model
from tfconvert.schema.tflite.tables import SIZES, TFLITE, Field
from tfconvert.schema.tflite.writer import encode

Tree = dict[str, Any]


# How often tables are changed, by their names; others have 1, and tables of options 3.
_WEIGHTS = {"Operator": 3, "Tensor": 3}
_QUANTIZED_WEIGHTS = {
    **dict.fromkeys(("QuantizationParameters", "BlockwiseQuantization", "MultiAxisQuantization"), 12),
    "Tensor": 4,
    "Buffer": 4,
}


def mutate(random: Random, content: bytes, *, quantization: bool = False) -> bytes:
    """Returns a file with one to four fields changed; the file itself is well-formed.

    Args:
        random: Draws everything.
        content: The file.
        quantization: Whether it is mostly scales, zero points and their axes that are changed, and values.
    """
    tree = read_model(content).tree()
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        _mutate_table(random, tree, _QUANTIZED_WEIGHTS if quantization else _WEIGHTS)
    return bytes(encode(TFLITE, tree, TFLITE_IDENTIFIER).data)


def _tables(tree: Tree, name: str) -> list[tuple[str, Tree]]:
    """Returns a table and all tables in it, with their names in the schema."""
    found = [(name, tree)]
    for field in TFLITE.fields(name).values():
        value = tree.get(field.name)
        if not value:
            continue
        if field.kind == "table":
            found += _tables(value, field.refers)
        elif field.kind == "union":
            found += _tables(value[1], value[0])
        elif field.kind == "[table]":
            for item in value:
                found += _tables(item, field.refers)
    return found


def _mutate_table(random: Random, tree: Tree, by_name: Mapping[str, int]) -> None:
    tables = _tables(tree, TFLITE.root)
    weights = [by_name.get(name, 3 if name.endswith("Options") else 1) for name, _ in tables]
    name, table = random.choices(tables, weights)[0]
    fields = [field for field in TFLITE.fields(name).values() if field.kind != "utype"]
    stored = [field for field in fields if field.name in table]
    if stored and random.random() < 0.85:
        fields = stored
    if not fields:
        return
    field = random.choice(fields)
    if random.random() < 0.1:
        table.pop(field.name, None)
        return
    changed = _changed(random, field, table.get(field.name), tables)
    if changed is not None:
        table[field.name] = changed


def _changed(random: Random, field: Field, value: Any, tables: list[tuple[str, Tree]]) -> Any:
    """Returns another value of a field, or `None`."""
    kind = field.kind
    if kind in SIZES:
        return _scalar(random, kind, field.refers, value or 0)
    if kind == "string":
        return numbers.text(random, value or "")
    if kind == "table":
        alike = [table for name, table in tables if name == field.refers]
        return random.choice(alike) if alike else {}
    if kind == "union":
        options = [(name, table) for name, table in tables if name in TFLITE.enums[field.refers]]
        if random.random() < 0.3:
            return random.choice(sorted(set(TFLITE.enums[field.refers]) - {"NONE"})), {}
        return random.choice(options) if options else None
    return _changed_list(random, field, list(value or ()), tables)


def _changed_list(random: Random, field: Field, items: list[Any], tables: list[tuple[str, Tree]]) -> Any:
    inner = field.kind[1:-1]
    kind = random.choice(("drop", "double", "swap", "change", "change", "change", "add"))
    place = random.randrange(len(items)) if items else 0
    if items and kind == "drop":
        del items[place]
    elif items and kind == "double":
        items.insert(random.randrange(len(items)), items[place])
    elif items and kind == "swap":
        other = random.randrange(len(items))
        items[place], items[other] = items[other], items[place]
    else:
        alike = [table for name, table in tables if name == field.refers]
        if inner in SIZES:
            new = _scalar(random, inner, field.refers, items[place] if items else 0)
        elif inner == "string":
            new = numbers.text(random, "x")
        else:
            new = random.choice(alike) if alike else {}
        if items and kind == "change":
            items[place] = new
        else:
            items.append(new)
    return items if inner in ("string", "table") else tuple(items)


def _scalar(random: Random, kind: str, enum: str, value: Any) -> Any:
    """Returns another number."""
    if kind == "bool":
        return not value
    if kind in ("float", "double"):
        return random.choice(
            [number for number in numbers.FLOATS if kind == "double" or not 1e39 < abs(number) < 1e301]
        )
    if enum and random.random() < 0.8:
        return random.choice(list(TFLITE.enums[enum].values()))
    bits, is_signed = 8 * SIZES[kind], kind in ("byte", "short", "int", "long")
    lowest, highest = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    return numbers.integer(random, lowest, highest, int(value))
