"""From the official converter's attributes to the setting `quantize`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from tfconvert.compat.row import Mapped, Values, refusal
from tfconvert.schema.diagnostics import NOTE, WARNING, Diagnostic, error
from tfconvert.settings.quantization import NOT_DENSE, Accumulation, Bias, Io, Mode, PerChannel, Quantize

BUILTINS = "TFLITE_BUILTINS"
FLEX = "SELECT_TF_OPS"
INT8 = "TFLITE_BUILTINS_INT8"
INT16 = "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"

_OPTIMIZATIONS = {"DEFAULT", "OPTIMIZE_FOR_SIZE", "OPTIMIZE_FOR_LATENCY"}
_SPARSITY = "EXPERIMENTAL_SPARSITY"
_IOS: dict[str, Io] = {"float32": "float32", "int8": "int8", "uint8": "uint8", "int16": "int16"}
# Bytes of the types that `supported_types` may have.
_SIZES = {"int8": 1, "float16": 2, "int16": 2, "float32": 4}

_ENDS = ("inference_input_type", "inference_output_type")

_SUMS = "target_spec._experimental_supported_accumulation_type"
_QDQ = "_experimental_qdq_conversion_mode"

_UNUSED = Diagnostic(
    "samples-not-used",
    "only what the model fake-quantizes itself becomes integers, so the samples of representative_dataset are not used",
    severity=NOTE,
)
SAMPLES = "representative_dataset"

_DEFAULT_RANGES = "default_ranges_stats"

_WITH_SAMPLES = "set optimizations = [Optimize.DEFAULT] and a representative_dataset"


class _Wish(NamedTuple):
    """The quantization that the attributes describe.

    Attributes:
        optimizes: Whether an optimization is on.
        ops: The names of the sets of operators.
        types: The names of the types of weights.
        io: The element types of inputs and of outputs.
    """

    optimizes: bool
    ops: frozenset[str]
    types: frozenset[str]
    io: tuple[Io, Io]

    @property
    def has_integer_ends(self) -> bool:
        """Whether inputs or outputs should be integers."""
        return self.io != ("float32", "float32")


def quantize(values: Values) -> Mapped:
    """Maps what decides about quantization.

    Raises:
        ConversionError: A value isn't known, or the attributes ask for what can't be made (`wrong-option`).
    """
    optimizations = names("optimizations", values["optimizations"])
    _known("optimizations", optimizations, _OPTIMIZATIONS | {_SPARSITY})
    ops = supported_ops(values)
    types = frozenset(element_type(each) for each in _listed(values["target_spec.supported_types"]))
    _known("target_spec.supported_types", types, _SIZES)
    if types == {"int8"}:
        ops = frozenset((INT8,))
    whole = element_type(values.get("inference_type") or "float32")
    optimizes = bool(optimizations & _OPTIMIZATIONS) or whole != "float32" or bool(values.get("quantized_input_stats"))
    ends = _io(values, whole)
    as_trained = _as_trained(values, ends)
    if as_trained is not None:
        return as_trained
    wish = _Wish(optimizes, ops, types, ends)
    notes = _notes(wish, values)
    sparse = {"sparse_weights": True} if _SPARSITY in optimizations else {}
    if not optimizes:
        for name, kind in zip(_ENDS, wish.io, strict=True):
            if kind != "float32":
                raise refusal(name, f"it can't be {kind}: nothing is quantized", _WITH_SAMPLES)
        return Mapped(sparse, notes)
    setting = _setting(wish, values)
    if values.get(_DEFAULT_RANGES) is not None and (setting is None or not setting.is_static):
        text = f"{_DEFAULT_RANGES} has no effect: only integers need ranges"
        notes = (*notes, Diagnostic("no-effect", text, severity=NOTE))
    return Mapped(sparse if setting is None else {**sparse, "quantize": setting}, notes)


def _as_trained(values: Values, ends: tuple[Io, Io]) -> Mapped | None:
    """Returns the setting for a model whose own fake quantization says what becomes integers; `None` for others.

    Raises:
        ConversionError: There is no such mode (`wrong-option`).
    """
    mode, strict = values[_QDQ], bool(values["_experimental_strict_qdq"])
    if mode not in (None, "NONE", "STATIC", "DYNAMIC"):
        raise refusal(_QDQ, f"Unknown QDQ conversion mode: {mode!r}", "choose from NONE, STATIC, DYNAMIC")
    if mode in (None, "NONE") and not strict:
        return None
    # What is strictly between pairs is integers in any mode; inputs and outputs are in one.
    name: Mode = "dynamic" if mode == "DYNAMIC" and not strict else "int8"
    whole: tuple[Io, Io] = ("int8", "int8")
    taken, given = whole if mode == "STATIC" and not strict else ends
    io: Io | tuple[Io, Io] = taken if taken == given else (taken, given)
    setting = Quantize(name, io=io, per_channel=_per_channel(values), trained_only=True)
    unused = values[SAMPLES] is not None
    return Mapped({"quantize": setting}, (_UNUSED,) if unused else ())


def supported_ops(values: Values) -> frozenset[str]:
    """Returns the names of the sets of operators that the result may have.

    Raises:
        ConversionError: There is no such set (`wrong-option`).
    """
    found = names("target_spec.supported_ops", values["target_spec.supported_ops"])
    _known("target_spec.supported_ops", found, {BUILTINS, FLEX, INT8, INT16})
    return found


def _setting(wish: _Wish, values: Values) -> Quantize | None:
    samples = values[SAMPLES]
    per_channel = _per_channel(values)
    smallest = min(wish.types, key=_SIZES.__getitem__, default="int8")
    integers: Mode = "int16" if INT16 in wish.ops else "int8"
    is_strict = not wish.ops & {BUILTINS, FLEX}
    taken, given = wish.io
    io = taken if taken == given else wish.io
    only_weights = samples is None and not wish.has_integer_ends and not wish.ops & {INT8, INT16}
    has_variables = bool(values["_experimental_variable_quantization"])
    if has_variables and (only_weights or smallest == "float16"):
        raise error(
            "wrong-option",
            "`_experimental_variable_quantization` is only supported for full-integer modes",
            hint=_WITH_SAMPLES,
        )
    if smallest == "int16" and integers != "int16":
        raise refusal(
            "target_spec.supported_types",
            "int16 goes with the operators for 16-bit activations",
            f"set target_spec.supported_ops = [OpsSet.{INT16}]",
        )
    accumulation = _accumulation(values)
    if integers == "int8" and INT8 not in wish.ops and smallest != "int8":
        return Quantize("float16", io=io, accumulation=accumulation) if smallest == "float16" else None
    bias = _bias(values["_experimental_full_integer_quantization_bias_type"], integers)
    if only_weights:
        return Quantize("dynamic", per_channel=per_channel)
    # Without samples this is for models that were trained for integers; others are refused with a hint.
    return Quantize(
        integers,
        samples=None if samples is None else _samples(samples),
        io=io,
        per_channel=per_channel,
        strict=is_strict,
        slow_integers=True,
        variables="integers" if has_variables else "float32",
        bias=bias,
        default_range=values.get(_DEFAULT_RANGES),
        float_ends=wish.has_integer_ends and not values["experimental_new_quantizer"],
    )


def _per_channel(values: Values) -> PerChannel:
    """Returns which weights have a scale for each channel."""
    if values["_experimental_disable_per_channel"]:
        return False
    return NOT_DENSE if values["_experimental_disable_per_channel_quantization_for_dense_layers"] else True


def _io(values: Values, whole: str) -> tuple[Io, Io]:
    """Returns the types of inputs and of outputs."""
    kinds = [element_type(values[name] or whole) for name in _ENDS]
    for name, kind in zip(_ENDS, kinds, strict=True):
        _known(name, {kind}, _IOS)
    return _IOS[kinds[0]], _IOS[kinds[1]]


def _bias(wanted: Any, mode: Mode) -> Bias | None:
    """Returns the type of biases, `None` for the mode's own."""
    known: tuple[Bias, ...] = ("int64", "int32") if mode == "int16" else ("int32",)
    name = known[0] if wanted is None else element_type(wanted)
    found = next((each for each in known if each == name), None)
    if found is None:
        raise refusal(
            "_experimental_full_integer_quantization_bias_type",
            f"Expected bias type to be {' or '.join(known)}, not {name}",
            "leave it out",
        )
    return None if found == known[0] else found


def _accumulation(values: Values) -> Accumulation:
    """Returns in which floats products of 16-bit floats may be summed up."""
    wanted = values[_SUMS]
    known: tuple[Accumulation, ...] = ("float32", "float16")
    name = known[0] if wanted is None else element_type(wanted)
    for each in known:
        if each == name:
            return each
    raise refusal(_SUMS, f"it can't be {name}", "choose from float16, float32")


def _notes(wish: _Wish, values: Values) -> tuple[Diagnostic, ...]:
    notes = []
    if not wish.optimizes and (values[SAMPLES] is not None or wish.types or INT8 in wish.ops):
        notes.append(
            Diagnostic(
                "not-quantized",
                "nothing is quantized, since optimizations is empty",
                hint="set optimizations = [Optimize.DEFAULT]",
                severity=WARNING,
            )
        )
    return tuple(notes)


def element_type(value: Any) -> str:
    """Returns the name of an element type: a text, numpy's, or TensorFlow's (which need not be there)."""
    if isinstance(value, str):
        return value
    name = value.__name__ if isinstance(value, type) else getattr(value, "name", None)
    return name if isinstance(name, str) else repr(value)


def names(attribute: str, values: Any) -> frozenset[str]:
    """Returns the names of enumerators, ours or TensorFlow's, or of texts.

    Raises:
        ConversionError: One is neither (`wrong-option`).
    """
    found = [getattr(each, "value", each) for each in _listed(values)]
    for each in found:
        if not isinstance(each, str):
            raise refusal(attribute, f"it can't have {each!r}", "use the names that tfconvert has for them")
    return frozenset(found)


def _listed(values: Any) -> Iterable[Any]:
    """Returns what may be a list, or a single value, or nothing."""
    if values is None:
        return ()
    return values if isinstance(values, Iterable) and not isinstance(values, str | type) else (values,)


def _known(attribute: str, found: Iterable[str], known: Iterable[str]) -> None:
    strange = sorted(set(found) - set(known))
    if strange:
        raise refusal(attribute, f"{', '.join(strange)} can't be made", f"choose from {', '.join(sorted(known))}")


def _samples(dataset: Any) -> Any:
    """Returns samples as `Quantize` takes them: by signature if they come with its key."""

    def read() -> Iterable[Any] | Mapping[str, list[Any]]:
        # TensorFlow's own `RepresentativeDataset` can't be called.
        source = getattr(dataset, "input_gen", dataset)
        items: Iterator[Any] = iter(source() if callable(source) else source)
        first = next(items, None)
        if first is None:
            return []
        items = chain((first,), items)
        return _by_signature(items) if _has_key(first) else items

    return read


def _has_key(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], Mapping)


def _by_signature(items: Iterable[tuple[str, Any]]) -> Mapping[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, item in items:
        found.setdefault(key, []).append(item)
    return found


def by_name(read: Callable[[], Any], order: Sequence[str]) -> Callable[[], Any]:
    """Returns samples with names: what comes as a list of as many arrays as there are names is in their order."""

    def named() -> Any:
        samples = read()
        return samples if isinstance(samples, Mapping) else (_named(each, order) for each in samples)

    return named


def _named(sample: Any, order: Sequence[str]) -> Any:
    is_plain = isinstance(sample, list | tuple) and len(sample) == len(order)
    return dict(zip(order, sample, strict=True)) if is_plain else sample
