"""The verb `build`: converts all models of a project, as a file says."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tfconvert.cli.options import CONTEXT, show, to_settings
from tfconvert.converter.targets.output_form import form_of
from tfconvert.schema.diagnostics import ConversionError, error

_EXAMPLES = """
\b
Example of a tfconvert.toml:
  [[model]]
  model = "saved_model"
  output-file = "model.tflite"
  input-shape = {image = [1, 224, 224, 3]}
  verify = true

\b
  [[model]]
  model = "frozen.pb"
  output-file = "frozen.cc"
  output = ["scores:0", "boxes:0"]

The keys are the options of tfconvert, with their values; paths are taken from the file's folder.
"""

_TABLE = "model"
# Options of the command that are none of a model.
_OWN = {"help", "version", "json", "quiet", "verbose"}


@click.command("build", context_settings=CONTEXT, epilog=_EXAMPLES)
@click.argument("config", default="tfconvert.toml", metavar="[FILE]")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("-v", "--verbose", is_flag=True, help="Print the whole reports.")
def build(config: str, quiet: bool, verbose: bool) -> None:
    """Convert the models that FILE lists; tfconvert.toml by default.

    Every model is converted, whatever becomes of the others.

    Exit status: 0 if all files were written, 1 if a conversion failed, 2 if FILE is wrong.
    """
    from tfconvert.cli.main import main as convert

    if quiet and verbose:
        raise click.UsageError("-q and -v contradict each other")
    flags = [flag for flag, is_set in (("-q", quiet), ("-v", verbose)) if is_set]
    try:
        tables = _tables(Path(config))
        calls = [_arguments(table, convert, f"{config}: model {number}") for number, table in tables]
        _check_outputs([table for _, table in tables], config)
    except ConversionError as problem:
        show(problem.diagnostics)
        sys.exit(2)
    with contextlib.chdir(Path(config).parent):
        contexts = [
            _parsed(convert, [*flags, *call], f"{config}: model {number}")
            for (number, _), call in zip(tables, calls, strict=True)
        ]
        failed = [not _converted(convert, context) for context in contexts]
    sys.exit(int(any(failed)))


def _tables(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    """Returns the file's tables of models, counted from 1."""
    import tomllib

    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as problem:
        raise _wrong(f"can't read {path}: {problem.strerror}", "name the file: tfconvert build FILE") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise _wrong(f"{path}: {problem}") from None
    tables = content.pop(_TABLE, [])
    if content:
        raise _wrong(f"{path}: {next(iter(content))!r} is not known", f"put the settings below [[{_TABLE}]]")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise _wrong(f"{path} lists no models", f"begin each with [[{_TABLE}]]")
    return list(enumerate(tables, start=1))


def _check_outputs(tables: Sequence[Mapping[str, Any]], config: str) -> None:
    seen: set[str] = set()
    for table in tables:
        output = os.path.normpath(str(table["output-file"]))
        if output in seen:
            raise _wrong(f"{config}: two models have the output-file {output!r}")
        seen.add(output)


def _options(convert: click.Command) -> dict[str, click.Option]:
    """Returns the options of a model by their keys."""
    options = {
        max(param.opts, key=len).removeprefix("--"): param
        for param in convert.params
        if isinstance(param, click.Option)
    }
    return {key: option for key, option in options.items() if key not in _OWN}


def _arguments(table: Mapping[str, Any], convert: click.Command, where: str) -> list[str]:
    """Returns the arguments that a table stands for.

    Raises:
        ConversionError: A key is not known, is missing, or has a value of another kind (`bad-config`).
    """
    options = _options(convert)
    for key in (_TABLE, "output-file"):
        if not isinstance(table.get(key), str):
            raise _wrong(f"{where} has no text {key!r}")
    arguments: list[str] = []
    for key, value in table.items():
        if key == _TABLE:
            continue
        if key not in options:
            raise _wrong(f"{where}: the key {key!r} is not known", _nearest(key, options))
        arguments += _argument(options[key], key, value, where)
    return [*arguments, "--", table[_TABLE]]


def _nearest(key: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(key, known, 1)
    return f"did you mean {near[0]!r}?" if near else "the keys are the options of tfconvert, without dashes"


def _argument(option: click.Option, key: str, value: object, where: str) -> Iterator[str]:
    if option.is_flag:
        if not isinstance(value, bool):
            raise _wrong(f"{where}: {key!r} must be true or false, not {value!r}")
        if value:
            yield f"--{key}"
        return
    if isinstance(value, Mapping):
        values: Iterable[object] = [f"{name}={_text(each, key, where)}" for name, each in value.items()]
    else:
        values = value if isinstance(value, list) else [value]
    texts = [_text(each, key, where) for each in values]
    if len(texts) != 1 and not option.multiple:
        raise _wrong(f"{where}: {key!r} takes one value, not {value!r}")
    for text in texts:
        yield f"--{key}={text}"


def _text(value: object, key: str, where: str) -> str:
    """Returns a value as it is written on the command line: numbers of a list have commas between them."""
    if isinstance(value, list):
        return ",".join(_text(each, key, where) for each in value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _wrong(f"{where}: {key!r} can't be {value!r}")
    return str(value)


def _parsed(convert: click.Command, arguments: list[str], where: str) -> click.Context:
    """Returns a call of the command; a value that it doesn't take ends the process."""
    try:
        context = convert.make_context("tfconvert", arguments)
        values = dict(context.params)
        form_of(values["output_file"], to_settings(values))
    except click.UsageError as problem:
        show(_wrong(f"{where}: {problem.format_message()}").diagnostics)
        sys.exit(2)
    except ConversionError as problem:
        first = problem.diagnostics[0]
        show([first._replace(message=f"{where}: {first.message}")])
        sys.exit(2)
    return context


def _converted(convert: click.Command, context: click.Context) -> bool:
    """Converts one model, and returns whether that went well."""
    try:
        with context:
            convert.invoke(context)
    except SystemExit as end:
        return not end.code
    except click.UsageError as problem:
        show(_wrong(problem.format_message()).diagnostics)
        return False
    finally:
        # The command doesn't look for garbage while it converts, and the next model needs room.
        gc.collect()
    return True


def _wrong(message: str, hint: str = "") -> ConversionError:
    return error("bad-config", message, hint=hint)
