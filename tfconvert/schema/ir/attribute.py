"""The base of attributes and types: immutable, interned, printed without a printer of ops.

There is one instance of each attribute, created by `get` of its class, so attributes are equal if they are identical,
and one is as cheap a key of a dictionary as any object can be. The table of instances keeps none of them alive: it
holds weak references.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar, Self, TypeVar

A = TypeVar("A", bound="Attribute")


class Attribute:
    """Base of all attributes and types.

    A class declares its fields by annotations. Their order is that of the arguments of `get` and of `intern`; the order
    of `__slots__` doesn't matter. Nothing writes to a field again.

    Attributes:
        NAME: The name in the text with its dialect: `tf_type.shape` of `#tf_type.shape<...>`.
        FIELDS: The names of the fields, in the order of their annotations, those of base classes first.
    """

    __slots__ = ("__weakref__",)

    NAME: ClassVar[str] = ""
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = [name for name, kind in cls.__annotations__.items() if not str(kind).startswith("ClassVar")]
        cls.FIELDS = (*cls.FIELDS, *own)

    @classmethod
    def intern(cls, *fields: Any, key: Hashable = None) -> Self:
        """Returns the only instance of a class that has these fields.

        Args:
            fields: The values of `FIELDS`, in that order.
            key: The identity of the instance, where that is not the equality of the fields.
        """
        entry = (cls, fields if key is None else key)
        found: Any = interned(entry)
        if found is not None:
            return found  # type: ignore[no-any-return]
        instance = object.__new__(cls)
        for name, value in zip(cls.FIELDS, fields, strict=True):
            setattr(instance, name, value)
        return keep(entry, instance)

    def print(self, printer: AttributePrinter) -> None:
        """Prints the attribute; this is MLIR's form of an attribute of a dialect, `#dialect.name` and parameters."""
        printer.write(f"#{self.NAME}")
        self.print_parameters(printer)

    def print_parameters(self, printer: AttributePrinter) -> None:
        """Prints the parameters after the name; nothing otherwise."""

    def __str__(self) -> str:
        pieces: list[str] = []
        self.print(AttributePrinter(pieces.append))
        return "".join(pieces)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # `get` knows the key; a class without one has none.
        return getattr(self, "get", self.intern), tuple(getattr(self, name) for name in self.FIELDS)


class Type(Attribute):
    """Base of all types. As in MLIR's text, a type is an attribute too."""

    __slots__ = ()

    def print(self, printer: AttributePrinter) -> None:
        printer.write(f"!{self.NAME}")
        self.print_parameters(printer)


class AttributePrinter:
    """Prints attributes to a function that consumes text; subclasses decide how nested ones are printed.

    Attributes:
        write: Consumes each piece of text.
    """

    __slots__ = ("write",)

    def __init__(self, write: Callable[[str], object]) -> None:
        self.write = write

    def attribute(self, attribute: Attribute) -> None:
        """Prints an attribute or a type."""
        attribute.print(self)

    def attributes(self, attributes: Iterable[Attribute]) -> None:
        """Prints a list, separated by commas."""
        separator = ""
        for attribute in attributes:
            if separator:
                self.write(separator)
            self.attribute(attribute)
            separator = ", "


class _Reference(weakref.ref[Attribute]):
    """A reference that knows its place in the table, so that the place can be freed."""

    __slots__ = ("entry",)

    entry: Hashable


_INSTANCES: dict[Hashable, _Reference] = {}


def interned(entry: Hashable) -> Any:
    """Returns the attribute that the table has at an entry, or `None` if it is missing or no longer used."""
    reference = _INSTANCES.get(entry)
    return reference() if reference is not None else None


def keep(entry: Hashable, instance: A) -> A:
    """Puts a new attribute into the table, unless another thread was faster; returns the one that is in the table.

    Args:
        entry: The class and the fields; of types that Python compares without calling back.
        instance: The attribute.
    """
    reference = _Reference(instance, _forget)
    reference.entry = entry
    # One call that no other thread can interrupt.
    while (other := _INSTANCES.setdefault(entry, reference)) is not reference:
        found: Any = other()
        if found is not None:
            return found  # type: ignore[no-any-return]
        _forget(other)
    return instance


def _forget(reference: weakref.ref[Any]) -> None:
    assert isinstance(reference, _Reference)
    if _INSTANCES.get(reference.entry) is reference:
        del _INSTANCES[reference.entry]
