"""Hints for ops that can't be legalized, by what is wrong with them and by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from tfconvert.converter.pipeline.refusals import PIPELINES, PYTHON

_CUSTOM = (
    "allow custom ops (--allow-custom-ops, allow_custom_ops=True) and register an operator of this name in your app"
)
_FLEX = "allow Select TF ops (--allow-flex, allow_flex=True), for which your app has to link the Flex delegate"

_TEXT = "LiteRT can't process strings: split, clean and hash text before it gets to the model, which then takes numbers"
_TRAINING = "export the model for inference, without the layers that augment images: they are for training only"
_DRAW = (
    "draw with tf.random.normal or tf.random.uniform, which LiteRT has, or let the model take the random numbers as an "
    "input"
)
_STATE = "export a function that takes the state as an input and returns the new one"
_SOLVE = "compute it before or after the model, or write out the formula if the matrices are small"


# The names of Keras' layers that augment images, in the path of a layer.
_AUGMENTATION = re.compile(
    r"(^|/)(random_(brightness|color_\w+|contrast|crop|elastic\w*|erasing|flip|gaussian_blur|grayscale|height|hue|invert|"
    r"perspective|posterization|rotation|saturation|sharpness|shear|translation|width|zoom)|rand_augment|aug_mix|"
    r"mix_up|cut_mix|auto_contrast)(_\d+)*(/|$)"
)


class _Row(NamedTuple):
    """A piece of advice.

    Attributes:
        pattern: The names of ops, without `tf.`, or reasons that it is for, as a regular expression.
        text: The advice.
        is_all: Whether nothing else helps, so that the last resort isn't mentioned.
        side: Where in an app the ops belong, `before` the model or `behind` it; empty if they belong in the model.
    """

    pattern: str
    text: str
    is_all: bool = False
    side: str = ""


_BY_OP: Sequence[_Row] = (
    _Row(
        "ImageProjectiveTransformV[23]|StatelessSampleDistortedBoundingBox|SampleDistortedBoundingBox.*|"
        "AdjustHue|RandomCrop",
        _TRAINING,
    ),
    _Row("Stateless(Random|Multinomial|Parameterized|TruncatedNormal).*", _DRAW),
    _Row("RngReadAndSkip|RngSkip|StatefulStandardNormal.*|StatefulUniform.*", f"{_DRAW}; or {_STATE}", True),
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
        True,
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
        "LogMatrixDeterminant|Lu|Tridiagonal.*|Batch(Cholesky|Svd|Matrix.*)",
        _SOLVE,
    ),
    _Row(
        "I?FFT.*|I?RFFT[23]D|BatchI?FFT.*",
        "LiteRT transforms real signals in one or two dimensions: use "
        "tf.signal.rfft or rfft2d, or transform before the model",
    ),
    _Row("Complex|Imag|Real|Conj|Angle|ComplexAbs", "compute with the real and imaginary parts as two real tensors"),
    _Row(
        "Igamma.*|(Di|L|Poly)gamma|Zeta|Betainc|Bessel.*|Ndtri|Spence|Dawsn|Expint|Fresnel.*",
        "compute it before or after the model, or approximate it with a polynomial over the range that occurs",
    ),
    _Row("Dilation2D", "with a filter of zeros it is tf.nn.max_pool2d, and erosion is -tf.nn.max_pool2d(-x)"),
    _Row("Fractional(Max|Avg)Pool", "use tf.nn.max_pool2d or tf.nn.avg_pool2d, or resize with tf.image.resize"),
    _Row("CombinedNonMaxSuppression", "call tf.image.non_max_suppression for each class, or suppress in your app"),
    _Row("EditDistance|Skipgram", "compute it in your app, from what the model returns", side="behind"),
    _Row(
        "CudnnRNN.*|BlockLSTM.*|LSTMBlockCell|GRUBlockCell",
        "build the layer with tf.keras.layers.LSTM or GRU, load the weights, and export that",
    ),
    _Row(
        "XlaCallModule",
        "the model comes from JAX or torch, and holds no TensorFlow ops: load its weights where "
        "KERAS_BACKEND=tensorflow, and export that",
        True,
    ),
    _Row("Xla.*", "export the model without jit_compile and without ops of XLA"),
    _Row(".*TPU.*|Collective.*|Nccl.*|CrossReplicaSum", "export the model for inference on one processor", True),
    _Row(
        ".*CandidateSampler|ComputeAccidentalHits|NegTrain|Sdca.*|BoostedTrees.*",
        "export a function for inference: this op is of training",
    ),
    _Row("Batch|Unbatch|BatchFunction", "export the function without batching of requests, which is for servers", True),
    _Row("(Save|Restore|MergeV2|Sharded).*", "export a function that doesn't save or restore", True),
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
    """Returns what is left where an op has to stay.

    Args:
        flex: Whether the Flex delegate takes it.
    """
    resorts = (_FLEX, _CUSTOM) if flex else (_CUSTOM,)
    return f"if the model can't do without it, {', or '.join(resorts)}"


def advice(op_name: str, reason: str, layer: str = "") -> str:
    """Returns what to do about an op that can't be converted; empty if nothing is known but the last resort.

    Args:
        op_name: The op's name, `tf.StringLower`.
        reason: The reason why it can't be converted; empty if LiteRT has nothing like it.
        layer: The path of the layer that it is in.
    """
    if _AUGMENTATION.search(layer):
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
