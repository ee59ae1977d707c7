"""Functions in declarative patterns: the names of their parameters are the names of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any

from tfconvert.converter.rewrite.pattern import PatternError


@lru_cache(4096)
def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the names that a function reads: those of its parameters without a default.

    Raises:
        PatternError: It is not a plain function, or has parameters that no name can fill.
    """
    if not isinstance(function, FunctionType):
        raise PatternError(f"the parameters of {function!r} are unknown; wrap it in a lambda")
    code = function.__code__
    if code.co_flags & (CO_VARARGS | CO_VARKEYWORDS) or code.co_kwonlyargcount:
        raise PatternError(f"every parameter of {function!r} must be a name of its own")
    return code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())]
