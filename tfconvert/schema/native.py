"""What compiled modules need to say to mypyc, which may compile them.

Nothing of it has an effect when a module runs, compiled or not: mypyc reads it in the source. Its own `mypy_extensions`
is known to type checkers alone, so that nobody needs it to run anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr

    __all__ = ["mypyc_attr"]
else:
    C = TypeVar("C")

    def mypyc_attr(**settings: bool) -> Callable[[C], C]:
        """Returns a decorator that leaves a class as it is; it tells mypyc how to compile the class."""
        return _itself

    def _itself(cls: C) -> C:
        return cls
