"""Settings: fields of dataclasses, with rows of the table of settings as their metadata.

The arguments of `convert`, the flags of the command, the JSON schemas of files and of the service, what a client
sends and the documentation are all derived from these rows. The type of a field determines its
values: its JSON schema also checks values of Python.
"""

from __future__ import annotations

import os
import reprlib
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache, reduce
from operator import or_
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.limits import Limits

Schema = Mapping[str, Any]
T = TypeVar("T")

# How many characters of a wrong value a message has.
_MAX_SHOWN = 100

_KEY = "setting"

_SIMPLE: Mapping[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    type(None): {"type": "null"},
}
_UNIONS = (Union, types.UnionType)
_LIMIT = {"type": "integer", "minimum": 0}
_EXPECTED = {"boolean": "True or False", "string": "a string", "number": "a number", "array": "a list"}


class Setting(NamedTuple):
    """A row of the table.

    Attributes:
        text: What it does, in a sentence.
        flag: The command's flag, which follows from the name by default.
        has_flag: Whether there is one.
        help: What the flag does, where that is not what the setting does.
        metavar: What the flag's value is called.
        expected: What values it has, which follows from the schema by default.
        example: A value; empty if `expected` says enough.
        schema: The JSON schema of its values in data, which follows from the field's type by default.
        accepts: Returns whether a value that is no JSON is one.
        is_path: Whether it names files: refused from clients.
        refusal: What it does that is refused.
        own_values: Items of a list that name neither files nor code of the user's.
        is_common: Whether the command's short help shows it.
        stays: Why it can't leave this process; empty if it can.
        uncached: Why results that depend on it can't be cached; empty if they can.
        name: The field, which follows from the class, as what is below does.
        data: The name in manifests and requests.
        default: Its default; `dataclasses.MISSING` if it has none.
    """

    text: str
    flag: str = ""
    has_flag: bool = True
    help: str = ""
    metavar: str = ""
    expected: str = ""
    example: str = ""
    schema: Schema = types.MappingProxyType({})
    accepts: Callable[[Any], bool] = lambda value: False
    is_path: bool = False
    refusal: str = "names files"
    own_values: tuple[str, ...] = ()
    is_common: bool = False
    stays: str = ""
    uncached: str = ""
    name: str = ""
    data: str = ""
    default: Any = None

    @property
    def client_schema(self) -> Schema:
        """The JSON schema of the values that a client may send."""
        if not self.own_values:
            return self.schema
        return {"type": "array", "items": {"type": "string", "enum": list(self.own_values)}}

    def is_own(self, value: Any) -> bool:
        """Returns whether a value is a list that names neither files nor code of the user's."""
        return _is_list(value) and all(isinstance(each, str) and each in self.own_values for each in value)

    def fits(self, value: Any) -> bool:
        """Returns whether a value is one that the setting may have."""
        return self.accepts(value) or is_valid(value, self.schema)


def setting(default: Any, text: str, **row: Any) -> Any:
    """Returns a field that is a setting.

    Args:
        default: Its default, `dict` for an empty one, or `dataclasses.MISSING` for none.
        text: What it does, in a sentence.
        row: Other fields of `Setting`.
    """
    metadata = {_KEY: Setting(text=text, **row)}
    if default is dict:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@cache
def settings_of(cls: Any) -> Mapping[str, Setting]:
    """Returns the settings among a dataclass's fields, by name.

    The class may have a `DATA_PREFIX` of their names in data, and a `FLAG_PREFIX` of flags.
    """
    hints = get_type_hints(cls)
    data_prefix, flag_prefix = getattr(cls, "DATA_PREFIX", ""), getattr(cls, "FLAG_PREFIX", "")
    found = {}
    for each in fields(cls):
        row: Setting | None = each.metadata.get(_KEY)
        if row is None:
            continue
        schema = row.schema or schema_of(_without_none(hints[each.name]))
        flag = row.flag or f"--{flag_prefix}{each.name}".replace("_", "-")
        found[each.name] = row._replace(
            flag=flag if row.has_flag else "",
            expected=row.expected or expected_of(schema),
            schema=schema,
            name=each.name,
            data=f"{data_prefix}{each.name}",
            default=each.default if each.default_factory is MISSING else each.default_factory(),
        )
    return found


def _without_none(hint: Any) -> Any:
    """Returns a type without `None`, which leaves a setting out rather than being its value."""
    if get_origin(hint) not in _UNIONS:
        return hint
    return reduce(or_, (each for each in get_args(hint) if each is not type(None)))


def schema_of(hint: Any) -> Schema:
    """Returns the JSON schema of a type's values; classes of settings are objects."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if hint is Limits:
        return object_schema(dict.fromkeys(Limits._fields, _LIMIT))
    if is_dataclass(hint):
        cls: Any = hint
        rows = settings_of(cls).values()
        required = [each.name for each in fields(hint) if each.default is MISSING and each.default_factory is MISSING]
        return object_schema({each.data: each.schema for each in rows if not each.stays}, required)
    if origin is Literal:
        is_text = all(isinstance(each, str) for each in arguments)
        return {**({"type": "string"} if is_text else {}), "enum": list(arguments)}
    if origin in _UNIONS:
        known = [schema_of(each) for each in arguments if get_origin(each) is not os.PathLike]
        return known[0] if len(known) == 1 else {"oneOf": known}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0]), "minItems": 2, "maxItems": 2}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return {"type": "array", "items": schema_of(arguments[0])}
    return {}


def object_schema(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
    """Returns the schema of objects that have some properties and no others."""
    schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def expected_of(schema: Schema) -> str:
    """Returns what values a schema allows, in words; empty if it says too much for that."""
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if schema.get("type") == "integer":
        return f"an integer of at least {schema['minimum']}" if "minimum" in schema else "an integer"
    return _EXPECTED.get(str(schema.get("type")), "")


def is_valid(value: Any, schema: Schema) -> bool:
    """Returns whether a value has a JSON schema, whose keywords are those that this module uses.

    Of Python's values, sequences are arrays, mappings objects and paths strings; so are numpy's scalars numbers.
    """
    if "oneOf" in schema:
        return any(is_valid(value, each) for each in schema["oneOf"])
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if kinds and not any(_KINDS[kind](value) for kind in kinds):
        return False
    if value is None and kinds:
        return True
    if "enum" in schema and not any(type(each) is type(value) and each == value for each in schema["enum"]):
        return False
    if "minimum" in schema or "maximum" in schema:
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        if not low <= value <= high:
            return False
    if "array" in kinds:
        return _is_valid_array(value, schema)
    return "object" not in kinds or _is_valid_object(value, schema)


def _is_valid_array(value: Any, schema: Schema) -> bool:
    fits = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
    return fits and all(is_valid(each, schema.get("items", {})) for each in value)


def _is_valid_object(value: Mapping[Any, Any], schema: Schema) -> bool:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    if any(name not in value for name in schema.get("required", ())):
        return False
    for name, each in value.items():
        if not isinstance(name, str):
            return False
        known = properties.get(name, others)
        if known is False or not is_valid(each, known):
            return False
    return True


def is_flag(value: Any) -> bool:
    """Returns whether a value is a boolean, Python's or numpy's, which is no subclass of it."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def is_path(value: Any) -> bool:
    """Returns whether a value is a path."""
    return isinstance(value, str | os.PathLike)


def _is_integer(value: Any) -> bool:
    is_array = bool(getattr(value, "shape", ()))
    return hasattr(value, "__index__") and not isinstance(value, type) and not is_flag(value) and not is_array


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "boolean": is_flag,
    "integer": _is_integer,
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": _is_list,
    "object": lambda value: isinstance(value, Mapping),
    "null": lambda value: value is None,
}


def check_fields(given: Any, prefix: str = "", cls: Any = None) -> None:
    """Checks that the settings of a dataclass have values of their kinds, and those of classes in it.

    Only kinds of values are checked. Whether a name is the model's, or a file can be read, is found out later.

    Args:
        given: The dataclass.
        prefix: What stands before the names in messages.
        cls: The class that has the settings, if it is a base of the dataclass.

    Raises:
        ConversionError: One has another value (`wrong-option`).
    """
    cls = cls or type(given)
    for name, row in settings_of(cls).items():
        value = getattr(given, name)
        if value is row.default:
            continue
        if isinstance(value, Limits):
            _check_limits(value)
        elif isinstance(row.default, Limits) or not row.fits(value):
            raise wrong_value(f"{prefix}{name}", value, row)


def _check_limits(limits: Limits) -> None:
    for name, value in limits._asdict().items():
        if not is_valid(value, _LIMIT):
            raise _wrong(f"limits.{name}", value, expected_of(_LIMIT), "")


def wrong_value(name: str, value: object, row: Setting) -> ConversionError:
    """Returns the error about a value of a setting."""
    return _wrong(name, value, row.expected, row.example)


def _wrong(name: str, value: object, expected: str, example: str) -> ConversionError:
    more = f", as in {name}={example}" if example else ""
    return error("wrong-option", f"{name} can't be {shown(value)}", hint=f"use {expected}{more}")


class _Shown(reprlib.Repr):
    """Short texts of values, which don't have the numbers of arrays."""

    def repr1(self, x: Any, level: int) -> str:
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if shape is None or dtype is None or isinstance(x, type):
            return super().repr1(x, level)
        sizes = ", ".join(map(str, shape))
        return f"<{type(x).__name__} of {getattr(dtype, 'name', dtype)} [{sizes}]>"


_SHOWN = _Shown()


def shown(value: object) -> str:
    """Returns a value as messages show it: in one line, cut off, and arrays by their types and shapes."""
    return " ".join(_SHOWN.repr(value).split())[:_MAX_SHOWN]


def documented(cls: type[T]) -> type[T]:
    """Adds the sentences of a class's settings to its docstring."""
    rows = ((each.name, each.metadata.get(_KEY)) for each in fields(cls))  # type: ignore[arg-type]  # A dataclass.
    lines = [f"    {name}: {row.text}" for name, row in rows if row is not None]
    cls.__doc__ = "\n".join([f"{cls.__doc__}\n", "Attributes:", *lines])
    return cls
