"""The flags of `tflite_convert` in the command's own words: a call of old is rewritten to one of today."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import click

from tfconvert.compat.flags import FLAGS
from tfconvert.converter.targets.output_form import ending_of

_MODELS = ("graph_def_file", "saved_model_dir", "keras_model_file")
_INTEGERS = {"INT8": "int8", "UINT8": "uint8", "QUANTIZED_UINT8": "uint8"}
# The sets of operators that need no samples.
_SETS = frozenset(("TFLITE_BUILTINS", "SELECT_TF_OPS"))


def is_meant(arguments: Sequence[str]) -> bool:
    """Returns whether a call has flags of `tflite_convert`."""
    return any(_name(each) in FLAGS for each in arguments)


def rewritten(arguments: Sequence[str]) -> list[str]:
    """Returns a call in today's words, which also go to the error stream, with what has no effect.

    Args:
        arguments: The arguments of the command; those that are today's already stay as they are.
    """
    flags, others = _parsed(arguments)
    call = [*_model(flags), *_settings(flags), *_quantization(flags), *others]
    if not {"-q", "--quiet"} & set(others):
        for name in flags:
            if FLAGS[name].effect == "no effect":
                click.echo(f"tfconvert: note: --{name} has no effect: {FLAGS[name].text}", err=True)
        click.echo(f"tfconvert: note: in today's words: tfconvert {shlex.join(call)}", err=True)
    return call


def _name(argument: str) -> str:
    return argument[2:].partition("=")[0] if argument.startswith("--") else ""


def _parsed(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Returns the flags that are set, with their values, and all other arguments."""
    flags: dict[str, str] = {}
    others: list[str] = []
    rest = deque(arguments)
    while rest:
        argument = rest.popleft()
        name = _name(argument)
        if name not in FLAGS:
            others.append(argument)
            continue
        if FLAGS[name].effect == "refused":
            raise click.UsageError(f"--{name}: {FLAGS[name].text}")
        _, equals, value = argument.partition("=")
        value = value if equals else _value(name, rest)
        if FLAGS[name].kind == "value":
            flags[name] = value
        elif value.lower() not in ("true", "false"):
            raise click.UsageError(f"--{name} can't be {value!r}: leave it alone, or say true or false")
        elif value.lower() == "true":
            flags[name] = "true"
    return flags, others


def _value(name: str, rest: deque[str]) -> str:
    """Returns the value behind a flag, which is then taken."""
    kind = FLAGS[name].kind
    if kind == "value":
        if not rest:
            raise click.UsageError(f"--{name} needs a value")
        return rest.popleft()
    is_said = kind == "truth" and bool(rest) and rest[0].lower() in ("true", "false")
    return rest.popleft() if is_said else "true"


def _listed(flags: Mapping[str, str], name: str) -> list[str]:
    return [each for each in flags.get(name, "").split(",") if each]


def _model(flags: Mapping[str, str]) -> Iterator[str]:
    """Yields the arguments that name the model and the output."""
    models = [name for name in _MODELS if name in flags]
    if len(models) > 1:
        raise click.UsageError(f"--{models[0]} and --{models[1]} both name a model: choose one")
    if models:
        yield flags[models[0]]
    if "output_file" in flags:
        yield from ("-o", flags["output_file"])
        if ending_of(flags["output_file"]) not in ("", ".tflite"):
            yield from ("--target", "litert")  # Scripts for TensorFlow's converter have chosen their own extensions.
    if models and models[0] != "graph_def_file":
        yield from ("--order", "official")
    if models:
        yield from ("--names", "official")


def _settings(flags: Mapping[str, str]) -> Iterator[str]:
    """Yields the arguments that select the part of the model."""
    for tag in _listed(flags, "saved_model_tag_set"):
        yield from ("--tags", tag)
    for key in _listed(flags, "saved_model_signature_key"):
        yield from ("--signature", key)
    names = _listed(flags, "input_arrays")
    for name in names:
        yield from ("--input", name)
    for name in _listed(flags, "output_arrays"):
        yield from ("--output", name)
    yield from _shapes(flags, names)
    if "allow_custom_ops" in flags:
        yield "--allow-custom-ops"
    if "SELECT_TF_OPS" in _listed(flags, "target_ops"):
        yield "--allow-flex"
        for name in _listed(flags, "experimental_select_user_tf_ops"):
            yield from ("--flex-op", name)
    if flags.get("output_format", "TFLITE").upper() != "TFLITE":
        raise click.UsageError(f"--output_format can't be {flags['output_format']}: only TFLITE is written")


def _shapes(flags: Mapping[str, str], names: Sequence[str]) -> Iterator[str]:
    """Yields the shapes of inputs."""
    if "input_shapes" in flags:
        shapes = flags["input_shapes"].split(":")
        if len(shapes) != len(names):
            raise click.UsageError(
                f"--input_shapes has {len(shapes)} shapes, and --input_arrays {len(names)} names: "
                "say --input-shape NAME=1,224,224,3"
            )
        for name, shape in zip(names, shapes, strict=True):
            yield from ("--input-shape", f"{name}={shape}")


def _quantization(flags: Mapping[str, str]) -> Iterator[str]:
    """Yields the arguments for quantization."""
    sets = set(_listed(flags, "target_ops")) - _SETS
    if sets:
        raise click.UsageError(
            f"--target_ops can't have {', '.join(sorted(sets))}: integers need samples; say "
            "--quantize int8 (or int16) --strict --samples PATH"
        )
    whole = _type(flags, "inference_type")
    taken = _type(flags, "inference_input_type") if "inference_input_type" in flags else whole
    is_small = bool({"post_training_quantize", "quantize_weights"} & set(flags))
    if whole == "float32" != taken and not is_small:
        raise click.UsageError("--inference_input_type is an integer, and --inference_type is not: set both")
    if is_small:
        # What was trained for integers isn't small floats: the official command sets the type back, too.
        yield from ("--quantize", "float16" if "quantize_to_float16" in flags else "dynamic")
    elif whole != "float32":
        yield from ("--quantize", "int8", "--io", whole if taken == whole else f"{taken},{whole}")
        yield from _stats(flags)
        ends = [flags[name] for name in ("default_ranges_min", "default_ranges_max") if name in flags]
        if len(ends) == 1:
            raise click.UsageError("--default_ranges_min and --default_ranges_max go together")
        if ends:
            yield f"--default-range={','.join(ends)}"  # The first number may have a sign.
    elif "quantize_to_float16" in flags:
        click.echo("tfconvert: note: --quantize_to_float16 has no effect without --post_training_quantize", err=True)


def _stats(flags: Mapping[str, str]) -> Iterator[str]:
    """Yields the means and standard deviations of inputs."""
    means, deviations = _listed(flags, "mean_values"), _listed(flags, "std_dev_values")
    names = _listed(flags, "input_arrays")
    if not means and not deviations:
        return
    if not len(means) == len(deviations) == len(names):
        raise click.UsageError("--mean_values and --std_dev_values need a number each for every name of --input_arrays")
    for name, mean, deviation in zip(names, means, deviations, strict=True):
        yield from ("--input-stats", f"{name}={mean},{deviation}")


def _type(flags: Mapping[str, str], name: str) -> str:
    value = flags.get(name, "FLOAT").upper()
    if value == "FLOAT":
        return "float32"
    if value not in _INTEGERS:
        raise click.UsageError(f"--{name} can't be {value}: choose from FLOAT, {', '.join(_INTEGERS)}")
    return _INTEGERS[value]
