"""The diagnostics of the ops that no pattern legalizes, with hints: causes first, then their consequences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.passes.find_training_mode import AUGMENTATION
from tfconvert.converter.pipeline.refusals import PIPELINES, PYTHON
from tfconvert.converter.rewrite.op_info import default_of, python_value, signature_of
from tfconvert.converter.rewrite.pattern import Failure
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.converter.targets.litert.flex.conversion import why_not
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.locations import LocationParts, place_of
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

_CUSTOM = (
    "allow custom ops (--allow-custom-ops, or allow_custom_ops=True in tfconvert.LiteRT) and register an operator of "
    "this name in your app"
)
_FLEX = (
    "allow Select TF ops (--allow-flex, or allow_flex=True in tfconvert.LiteRT), for which your app has to link the "
    "Flex delegate"
)

_TEXT = "LiteRT can't process strings: split, clean and hash text before it gets to the model, which then takes numbers"
_TRAINING = "export the model for inference, without the layers that augment images: they are for training only"
_DRAW = (
    "draw with tf.random.normal or tf.random.uniform, which LiteRT has, or let the model take the random numbers as an "
    "input"
)
_STATE = "export a function that takes the state as an input and returns the new one"
_SOLVE = "compute it before or after the model, or write out the formula if the matrices are small"


class _Row(NamedTuple):
    """A piece of advice."""

    pattern: str  # The names of ops, without `tf.`, or reasons that it is for, as a regular expression.
    text: str  # The advice.
    is_all: bool = False  # Whether nothing else helps, so that the last resort isn't mentioned.
    # Where in an app the ops belong, `before` the model or `behind` it; empty if they belong in the model.
    side: str = ""


_BY_OP: Sequence[_Row] = (
    _Row(
        "ImageProjectiveTransformV[23]|StatelessSampleDistortedBoundingBox|SampleDistortedBoundingBox.*|"
        "AdjustHue|RandomCrop",
        _TRAINING,
    ),
    _Row("Stateless(Random(?!GetAlg)|Multinomial|Parameterized|TruncatedNormal).*", _DRAW),
    _Row("StatefulStandardNormal.*|StatefulUniform.*", f"{_DRAW}; or {_STATE}", True),
    _Row("RandomPoisson.*|RandomGamma|RandomShuffle|Multinomial|ParameterizedTruncatedNormal", _DRAW),
    _Row(
        "CTCGreedyDecoder",
        "let the model return the logits and decode them outside: tf.argmax over the classes, "
        "repeated labels merged and blanks dropped, is greedy decoding",
        side="behind",
    ),
    _Row("CTC.*", "let the model return the logits and decode them in your app", side="behind"),
    _Row(
        "Decode(Jpeg|Png|Gif|Bmp|Image|AndCropJpeg|WebP)|ExtractJpegShape|Encode(Jpeg|Png).*",
        "let the model take the pixels: decode and encode images in your app",
        side="before",
    ),
    _Row(
        "DecodeWav|EncodeWav|AudioSpectrogram|Mfcc|ReadFile|WriteFile|MatchingFiles",
        "let the model take the samples: read and decode sound and files in your app",
        side="before",
    ),
    _Row(
        "Parse.*Example.*|Decode(CSV|Raw|Proto.*|PaddedRaw|JSONExample|Compressed|Base64)|ParseTensor|SerializeTensor|"
        "EncodeProto|EncodeBase64",
        "let the model take and return tensors: parse and serialize in your app",
        side="before",
    ),
    _Row(
        "String.*|StaticRegex.*|Regex.*|Unicode.*|Substr|AsString|ReduceJoin|UnsortedSegmentJoin", _TEXT, side="before"
    ),
    _Row(
        "(Anonymous)?Mutable(Dense)?HashTable.*|LookupTable(Insert|Remove|Export|Import).*",
        "LiteRT's tables are filled once, before anything is looked up: use a tf.lookup.StaticHashTable",
    ),
    _Row(
        "Ragged.*",
        "LiteRT has no ragged tensors: let the model take padded ones, and the rows' lengths if it needs them",
    ),
    _Row(
        "Sparse.*|.*SetOperation|SetSize", "LiteRT has no sparse tensors: compute with dense ones (tf.sparse.to_dense)"
    ),
    _Row(
        "(FakeQuantWithMinMax|QuantizeAndDequantize).*",
        "save the model as it is used after training, so that the ranges are variables that nothing writes to any more",
        True,
    ),
    _Row(
        "(.*Grad|.*Gradient|.*Backprop.*|Resource(SparseApply|Apply).*|(Sparse)?Apply.*)",
        "export a function for inference: this op is of training",
    ),
    _Row(
        "Qr|Svd|Cholesky|.*Eig.*|Matrix(Determinant|Inverse|Logarithm|Exponential|Solve.*|TriangularSolve|SquareRoot)|"
        "LogMatrixDeterminant|Lu|TridiagonalSolve|Batch(Cholesky|Svd|Matrix.*)",
        _SOLVE,
    ),
    _Row(
        "I?R?FFT.*|BatchI?FFT.*",
        "fix the length of the signal, or pad it to one that is a product of two numbers up to 1024, such as "
        "tf.signal.rfft(x, [length])",
    ),
    _Row("Complex|Imag|Real|Conj|Angle|ComplexAbs", "compute with the real and imaginary parts as two real tensors"),
    _Row(
        "Bessel[JKY].*",
        "compute it before or after the model, or approximate it with a polynomial over the range that occurs",
    ),
    _Row("Dilation2D", "dilate with small filters one after the other, or with a filter of zeros by tf.nn.max_pool2d"),
    _Row("Fractional(Max|Avg)Pool", "use tf.nn.max_pool2d or tf.nn.avg_pool2d, or resize with tf.image.resize"),
    _Row("CombinedNonMaxSuppression", "fix the batch (--batch 1), with at most 256 classes, or suppress in your app"),
    _Row("EditDistance|Skipgram", "compute it in your app, from what the model returns", side="behind"),
    _Row(
        "CudnnRNN.*|BlockLSTM.*|LSTMBlockCell|GRUBlockCell",
        "build the layer with tf.keras.layers.LSTM or GRU, load the weights, and export that",
    ),
    _Row("Xla.*", "export the model without jit_compile and without ops of XLA"),
    _Row(".*TPU.*|Collective.*|Nccl.*|CrossReplicaSum", "export the model for inference on one processor", True),
    _Row(
        ".*CandidateSampler|ComputeAccidentalHits|NegTrain|Sdca.*|BoostedTrees.*",
        "export a function for inference: this op is of training",
    ),
    _Row("Batch|Unbatch|BatchFunction", "export the function without batching of requests, which is for servers", True),
    _Row("(Save|Restore).*", "let one signature return the variables' values, and another one take and assign them"),
    _Row("(MergeV2|Sharded).*", "export a function that doesn't save or restore", True),
    _Row("Print.*|.*Summary.*|.*Event.*|Write.*Summary", "export the function without logging", True),
    _Row(".*Iterator.*|.*Dataset.*", "export a function of tensors and keep the input pipeline outside", True),
)

# Reasons that matter more than which op it is.
_BY_TYPE: Sequence[_Row] = (
    _Row(
        r"not for f64",
        "cast to float32 (tf.cast(x, tf.float32)), weights too; in Keras, build the model with dtype='float32'",
        True,
    ),
    _Row(r"the batch, .* is not known", "fix the batch: --batch 1 (batch=1)", True),
    _Row(r"not for complex", "compute with the real and imaginary parts as two real tensors"),
    _Row(r"not for string", _TEXT),
    _Row(r"not for ", "cast the operand to one of these types before the op", True),
    _Row(
        r"at most \d+ dimensions",
        "reduce the rank before the op: reshape neighbouring dimensions into "
        "one, drop those of size 1, or split the tensor",
        True,
    ),
)

_BY_REASON: Sequence[_Row] = (
    _Row(r"strings", _TEXT),
    _Row(r"state", _STATE),
    _Row(r"known", "give fixed sizes: --input-shape NAME=DIMS (input_shapes={...}), or export the model with them"),
    _Row(r"computed|constant", "let it be a constant, not something that the model computes while it runs"),
)


def last_resort(*, flex: bool) -> str:
    """Returns the last resort for an op that has to stay.

    Args:
        flex: Whether the Flex delegate takes it.
    """
    resorts = (_FLEX, _CUSTOM) if flex else (_CUSTOM,)
    return f"if the model can't do without it, {', or '.join(resorts)}"


def advice(op_name: str, reason: str, layer: str = "") -> str:
    """Returns advice about an op that can't be converted; empty if only the last resort is left.

    Args:
        op_name: The op's name, `tf.StringLower`.
        reason: The reason why it can't be converted; empty if LiteRT has nothing like it.
        layer: The path of the layer that it is in.
    """
    if AUGMENTATION.search(layer):
        return _TRAINING
    found = _found(op_name, reason)
    return "" if found is None else found.text


def side_of(op_name: str) -> str:
    """Returns where in an app an op belongs, `before` a model (it decodes files, say) or `behind` it; else nothing.

    Args:
        op_name: The op's name, `tf.DecodeJpeg`.
    """
    name = op_name.removeprefix("tf.")
    sides = (row.side for row in _BY_OP if re.fullmatch(row.pattern, name))
    return "before" if op_name in PYTHON | PIPELINES else next(sides, "")


def is_about_text(hint: str) -> bool:
    """Returns whether a hint is the advice about ops that process strings."""
    return hint.startswith(_TEXT)


def may_stay(op_name: str, reason: str) -> bool:
    """Returns whether the last resort is worth mentioning for an op, beside the advice about it."""
    found = _found(op_name, reason)
    return found is not None and not found.is_all


def _found(op_name: str, reason: str) -> _Row | None:
    name = op_name.removeprefix("tf.")
    by_type = (row for row in _BY_TYPE if re.search(row.pattern, reason))
    by_op = (row for row in _BY_OP if re.fullmatch(row.pattern, name))
    by_reason = (row for row in _BY_REASON if re.search(row.pattern, reason))
    return next(chain(by_type, by_op, by_reason), None)


CONSTANT = "tf.Const"

# Maximum number of further nodes of an op in the error.
_NAMED = 3

# Maximum number of operands or results of an op in the error.
_SHOWN = 6

# The longest attribute that the error shows.
_LONGEST = 60

# Minimum benefit of patterns for special forms. That such a form is missing explains nothing.
_SPECIAL = 3

_FORWARDING = frozenset({"tfl.cast", "tfl.expand_dims", "tfl.reshape", "tfl.squeeze", "tfl.transpose"})
_NEVER_SHOWN = frozenset({"container", "shared_name"})

_NO_OPERATOR = "LiteRT has no such operator, and no others compute the same"
_NO_CONSTANT = "the model changes this state while it runs, or its file doesn't hold the state's value"
_WHOLE = "include all constants in the text, and cast those of other element types to one of LiteRT's"


class _Cause(NamedTuple):
    """Why an op stays."""

    reason: str  # The reason, as a sentence.
    given: str = ""  # The element type that no pattern takes, if that is the reason.
    is_missing: bool = False  # Whether no pattern legalizes any op of this name.


def unsupported(
    ops: Sequence[Operation], patterns: PatternSet, flex_ops: Sequence[str] | None = None
) -> ConversionError:
    """Returns the error about the remaining ops, with a diagnostic for each cause and name.

    Args:
        ops: The ops, in their order.
        patterns: The patterns that could have legalized them.
        flex_ops: Names of ops that the user's Flex delegate takes beside the usual ones; `None` if flex ops are not
            allowed.
    """
    causes = {op: _cause(op, patterns) for op in ops}
    primary: dict[tuple[str, str], list[Operation]] = {}
    secondary: dict[tuple[str, str], list[tuple[Operation, Operation]]] = {}
    for op, cause in causes.items():
        blamed = _blamed(op, cause, causes)
        if blamed is None:
            primary.setdefault((op.name, cause.reason), []).append(op)
        else:
            secondary.setdefault((op.name, blamed.name), []).append((op, blamed))
    found = [_diagnostic(reason, same, flex_ops) for (_, reason), same in primary.items()]
    hints = {diagnostic.hint for diagnostic in found}
    staying = [same[0] for (name, reason), same in primary.items() if may_stay(name, _specific(reason))]
    resort = last_resort(flex=any(_can_be_flex(op, flex_ops) for op in staying))
    consequences = [_consequence(pairs) for pairs in secondary.values()]
    return ConversionError([*found, *consequences], [resort] if staying and resort not in hints else [])


def by_reason(ops: Sequence[tf.TFOp], patterns: PatternSet) -> list[tuple[str, Sequence[tf.TFOp]]]:
    """Returns why ops can't be legalized, and the ops of one name for which that is so."""
    found: dict[tuple[str, str], list[tf.TFOp]] = {}
    for op in ops:
        found.setdefault((op.name, _cause(op, patterns).reason), []).append(op)
    return [(reason, same) for (_, reason), same in found.items()]


def _can_be_flex(op: Operation, flex_ops: Sequence[str] | None) -> bool:
    """Returns whether it would help to allow flex ops."""
    return flex_ops is None and isinstance(op, tf.TFOp) and why_not(op) is None


def _cause(op: Operation, patterns: PatternSet) -> _Cause:
    if not patterns.for_root(op.name):
        return _Cause(_NO_CONSTANT if _is_about_state(op) else _NO_OPERATOR, is_missing=True)
    failures = [(pattern, failure) for pattern, failure in patterns.failures(op) if not failure.is_special]
    general = [failure for pattern, failure in failures if pattern.benefit < _SPECIAL]
    declined = general or [failure for _, failure in failures]
    others = [failure for failure in declined if not failure.takes]
    # Patterns come in falling order of benefit: the last one is the most general.
    return _Cause(others[-1].reason) if others else _of_type(declined)


def _of_type(failures: Sequence[Failure]) -> _Cause:
    """Returns the cause: no pattern accepts the element type."""
    taken = dict.fromkeys(_plain(name) for failure in failures for name in failure.takes.split())
    given = failures[0].given if failures else ""
    return _Cause(f"LiteRT computes it for {', '.join(taken)}, not for {_plain(given)}", given)


def _plain(element: str) -> str:
    return element.replace("!tf_type.", "").replace("#tf_type.", "")


def _is_about_state(op: Operation) -> bool:
    return any(isinstance(value.element, types.ResourceType) for value in (*op.operands, *op.results))


def _blamed(op: Operation, cause: _Cause, causes: Mapping[Operation, _Cause]) -> Operation | None:
    """Returns the op that keeps another one from being converted, or `None` if that one is the cause itself."""
    for operand in op.operands:
        producer = _producer(operand)
        if producer is None or producer not in causes:
            continue
        element = operand.element
        is_handle = isinstance(element, types.ResourceType | types.VariantType)
        if is_handle or (not cause.is_missing and (str(element) == cause.given or "known" in cause.reason)):
            return producer
    return None


def _producer(value: Value) -> Operation | None:
    """Returns the op that computes a value, looking through casts and changes of shape."""
    while isinstance(value, OpResult) and value.op.name in _FORWARDING:
        value = value.op.operands[0]
    return value.op if isinstance(value, OpResult) else None


def _diagnostic(reason: str, ops: Sequence[Operation], flex_ops: Sequence[str] | None) -> Diagnostic:
    first, place = ops[0], _first_place(ops)
    hint = _WHOLE if first.name == CONSTANT else advice(first.name, _specific(reason), place.layer)
    declined = why_not(first, flex_ops) if flex_ops is not None and isinstance(first, tf.TFOp) else None
    return Diagnostic(
        "unsupported-op",
        f"{reason}{f'; {declined}' if declined else ''}{_further(ops)}",
        op=first.name,
        node=place.node,
        location=str(place),
        hint=hint or last_resort(flex=_can_be_flex(first, flex_ops)),
        signature=signature(first),
        layer=place.layer,
    )


def _specific(reason: str) -> str:
    return "" if reason == _NO_OPERATOR else reason


def _consequence(pairs: Sequence[tuple[Operation, Operation]]) -> Diagnostic:
    ops, blamed = [op for op, _ in pairs], pairs[0][1]
    place, cause = _first_place(ops), place_of(blamed.location)
    named = f'{blamed.name}, node "{cause.node}"' if cause.node else blamed.name
    return Diagnostic(
        "unsupported-op",
        f"a consequence: it takes what is computed by {named}{_further(ops)}",
        op=ops[0].name,
        node=place.node,
        location=str(place),
        severity=NOTE,
    )


def _first_place(ops: Sequence[Operation]) -> LocationParts:
    places = [place_of(op.location) for op in ops]
    return next((place for place in places if place.node or place.source), places[0])


def _further(ops: Sequence[Operation]) -> str:
    """Returns how often an op is used, and its further locations."""
    if len(ops) == 1:
        return ""
    places = [place_of(op.location) for op in ops]
    others = [name for name in dict.fromkeys(place.node or place.source for place in places) if name][1:]
    more = ", ..." if len(others) > _NAMED else ""
    also = f", also at {', '.join(others[:_NAMED])}{more}" if others else ""
    return f"; used {len(ops)} times{also}"


def signature(op: Operation) -> str:
    """Returns an op's types, and those attributes that differ from their defaults."""
    results = [str(result.type) for result in op.results]
    operands = _types([str(operand.type) for operand in op.operands])
    shown = _types(results) if len(results) == 1 else f"({_types(results)})"
    attributes = ", ".join(_attributes(op))
    return f"({operands}) -> {shown}" + (f" {{{attributes}}}" if attributes else "")


def _attributes(op: Operation) -> Iterator[str]:
    declared = signature_of(op.name)
    for name, value in sorted(op.properties.items()):
        is_known = declared is None or declared.attributes is None or name in declared.attributes
        if is_known and name not in _NEVER_SHOWN and default_of(op.name, name) != value:
            held = python_value(value)
            text = _plain(str(value) if isinstance(held, np.dtype) else _attribute_text(held))
            if text not in ("[]", "") and len(text) <= _LONGEST:
                yield f"{name} = {text}"


def _attribute_text(value: Any) -> str:
    """Returns an attribute's value as TensorFlow's users write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return _attribute_text(value.decode("utf-8", "replace"))
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_attribute_text, value))}]"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _types(names: Sequence[str]) -> str:
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return _plain(", ".join(names[:_SHOWN])) + more
