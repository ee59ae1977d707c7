"""The verbs of the command by name; each is loaded when it is called, or listed."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module

import click

# The verbs: `bench` is the object of that name in the module of that name beside this one.
_NAMES = ("batch", "bench", "build", "completion", "diff", "explain", "inspect", "ops", "opt", "serve", "verify")


class Verbs(MutableMapping[str, click.Command]):
    """The verbs, as click's groups hold their commands."""

    def __init__(self) -> None:
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded and name in _NAMES:
            found = getattr(import_module(f"{__package__}.{name}"), name)
            assert isinstance(found, click.Command)
            self._loaded[name] = found
        return self._loaded[name]

    def __setitem__(self, name: str, verb: click.Command) -> None:
        self._loaded[name] = verb

    def __delitem__(self, name: str) -> None:
        raise TypeError("verbs are not removed")

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*_NAMES, *self._loaded}))

    def __len__(self) -> int:
        return len({*_NAMES, *self._loaded})
