"""Changes protobuf messages: any field of any message in them, and pieces of one model put into another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.mutate import numbers

_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
# Bytes; what is longer is data, and isn't part of the pool.
_MAX_BYTES = 1 << 16


class Pool:
    """The parts of models, by type, which may be moved to another position or another model.

    Args:
        messages: The models.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages: dict[str, list[Message]] = defaultdict(list)
        self.texts: dict[str, list[str]] = defaultdict(list)
        for whole in messages:
            for message in submessages(whole):
                name = message.DESCRIPTOR.full_name
                if len(self.messages[name]) < 5000 and message.ByteSize() < _MAX_BYTES:
                    self.messages[name].append(message)
                for field, value in message.ListFields():
                    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING and field.type == FieldDescriptor.TYPE_STRING:
                        values = list(value) if _is_repeated(field) else [value]
                        self.texts[field.full_name].extend(values[:100])


def _is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def submessages(message: Message) -> Iterator[Message]:
    """Yields a message and all messages in it."""
    waiting = [message]
    while waiting:
        one = waiting.pop()
        yield one
        for field, value in one.ListFields():
            if field.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE:
                continue
            if _is_map(field):
                waiting.extend(item for item in value.values() if isinstance(item, Message))
            elif _is_repeated(field):
                waiting.extend(value)
            else:
                waiting.append(value)


def mutate(random: Random, message: Message, pool: Pool) -> None:
    """Changes a message somewhere, or something in it.

    Args:
        random: Draws everything.
        message: Is changed in place.
        pool: What may be put in.
    """
    for _ in range(20):
        chosen = random.choice(list(submessages(message)))
        fields: list[Any] = [field for field, _ in chosen.ListFields()]
        if not fields or random.random() < 0.1:
            fields = list(chosen.DESCRIPTOR.fields)
        if fields and _change(random, chosen, random.choice(fields), pool):
            return


def _change(random: Random, message: Message, field: FieldDescriptor, pool: Pool) -> bool:
    """Changes a field; returns whether there is a difference."""
    before = message.SerializeToString(deterministic=True)
    if random.random() < 0.05:
        message.ClearField(field.name)
    elif _is_map(field):
        _change_map(random, getattr(message, field.name), field, pool)
    elif _is_repeated(field):
        _change_list(random, getattr(message, field.name), field, pool)
    elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        other = _other(random, field, pool)
        if other is None or random.random() < 0.2:
            message.ClearField(field.name)
        else:
            getattr(message, field.name).CopyFrom(other)
    else:
        setattr(message, field.name, _scalar(random, getattr(message, field.name), field, pool))
    return bool(message.SerializeToString(deterministic=True) != before)


def _other(random: Random, field: FieldDescriptor, pool: Pool) -> Message | None:
    assert field.message_type is not None
    known = pool.messages.get(field.message_type.full_name)
    return random.choice(known) if known else None


def _change_list(random: Random, items: Any, field: FieldDescriptor, pool: Pool) -> None:
    """Drops, doubles, exchanges, moves or adds elements of a list."""
    is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
    kind = random.choice(("drop", "double", "swap", "other", "other", "other", "add"))
    place = random.randrange(len(items)) if items else 0
    if items and kind == "drop":
        del items[place]
    elif items and kind == "double":
        items.append(items[place])
    elif len(items) > 1 and kind == "swap":
        other = random.randrange(len(items))
        values = list(items)
        if is_message:
            values = [type(value).FromString(value.SerializeToString()) for value in values]
        values[place], values[other] = values[other], values[place]
        del items[:]
        items.extend(values)
    elif is_message:
        piece = _other(random, field, pool)
        if piece is None:
            items.add()
        elif items and kind == "other":
            items[place].CopyFrom(piece)
        else:
            items.append(piece)
    elif items and kind != "add":
        items[place] = _scalar(random, items[place], field, pool)
    else:
        items.append(_scalar(random, _default(field), field, pool))


def _default(field: FieldDescriptor) -> Any:
    kinds = {FieldDescriptor.TYPE_STRING: "", FieldDescriptor.TYPE_BYTES: b"", FieldDescriptor.TYPE_BOOL: False}
    return kinds.get(field.type, 0)


def _change_map(random: Random, items: Any, field: FieldDescriptor, pool: Pool) -> None:
    """Drops, renames, exchanges or adds entries of a map."""
    assert field.message_type is not None
    keys, values = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
    names = sorted(items)
    key = random.choice(names) if names else _scalar(random, _default(keys), keys, pool)
    kind = random.random()
    if kind < 0.2 and names:
        del items[key]
        return
    name = key
    if kind < 0.35:
        name = _scalar(random, key, keys, pool)
    if values.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE:
        items[name] = _scalar(random, items[key] if names else _default(values), values, pool)
        return
    piece = items[random.choice(names)] if names and random.random() < 0.3 else _other(random, values, pool)
    if piece is not None:
        items[name].CopyFrom(type(piece).FromString(piece.SerializeToString()))


def _scalar(random: Random, value: Any, field: FieldDescriptor, pool: Pool) -> Any:
    """Returns another value of a field."""
    kind = field.cpp_type
    if kind in _RANGES:
        return numbers.integer(random, *_RANGES[kind], value)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return not value
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        assert field.enum_type is not None
        return random.choice([each.number for each in field.enum_type.values] + [99, 100 + value])
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        chosen = random.choice(numbers.FLOATS)
        return chosen if kind == FieldDescriptor.CPPTYPE_DOUBLE or abs(chosen) < 1e39 or chosen - chosen else 0.0
    if field.type == FieldDescriptor.TYPE_BYTES:
        return numbers.content(random, value)
    known = pool.texts.get(field.full_name)
    return random.choice(known) if known and random.random() < 0.6 else numbers.text(random, value)
