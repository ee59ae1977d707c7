"""Quantisation by blocks: the scales are tensors of the file that no operator names, only the weights' parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.importers.tflite.written_files import File, RoundTrip
from tests.support.litert import RunTFLite
from tfconvert.exporters.tflite.file import packed_bytes
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.quant import BlockwiseType

UNITS, DEPTH, SIZE = 8, 64, 32
RANDOM = np.random.default_rng(5)
WEIGHTS = RANDOM.integers(-7, 8, (UNITS, DEPTH), np.int8)
SCALES = RANDOM.uniform(0.05, 0.2, (UNITS, DEPTH // SIZE)).astype(np.float16)
DENSE = {"opcode_index": 0, "inputs": (0, 1, -1), "outputs": (2,), "builtin_options": ("FullyConnectedOptions", {})}
CODE = {"builtin_code": "FULLY_CONNECTED", "deprecated_builtin_code": 9, "version": 12}


def blocks(scales: int, **fields: Any) -> dict[str, Any]:
    return {"quantization": {"details": ("BlockwiseQuantization", {"scales": scales, "block_size": SIZE, **fields})}}


def weight(scales: int, **fields: Any) -> dict[str, Any]:
    return {"shape": WEIGHTS.shape, "type": "INT4", "buffer": 1, "name": "w", **blocks(scales, **fields)}


def scale(name: str = "w_scales", buffer: int = 2) -> dict[str, Any]:
    return {"shape": SCALES.shape, "type": "FLOAT16", "buffer": buffer, "name": name}


X, Y = {"shape": (2, DEPTH)}, {"shape": (2, UNITS)}
BUFFERS = [packed_bytes(WEIGHTS, 2), SCALES.tobytes(), bytes(SCALES.size)]


def test_the_file_computes_the_same(file: File, round_trip: RoundTrip, run_tflite: RunTFLite, tmp_path: Path) -> None:
    # Tensors that nothing uses are not written again, so that the scales are at another index.
    tensors = [X, weight(5), Y, {}, {}, scale("scales")]
    content = file(tensors, [DENSE], [CODE], outputs=(2,), buffers=BUFFERS)
    again = export(round_trip(content)).to_bytes()
    x = RANDOM.standard_normal((2, DEPTH)).astype(np.float32)
    (expected,) = run_tflite(content, [x])
    (got,) = run_tflite(again, [x])
    np.testing.assert_array_equal(got, expected)
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    (got,) = run_tflite(bytes(tfconvert.convert(path)), [x])
    np.testing.assert_array_equal(got, expected)
    real = WEIGHTS.astype(np.float32) * np.repeat(SCALES.astype(np.float32), SIZE, axis=1)
    np.testing.assert_allclose(got, x @ real.T, atol=0.05 * np.abs(x @ real.T).max())


def test_factors_folded_into_weights_are_not_folded_into_their_blocks(
    file: File, run_tflite: RunTFLite, tmp_path: Path
) -> None:
    """Two layers of the same integers with other scales, one of them scaled, the other with a bias."""
    factor = {"shape": (UNITS,), "buffer": 4}
    tensors = [X, weight(3), Y, scale(), {**weight(5), "name": "v"}, scale("other", 5), Y, factor, Y, Y, Y]
    calls = [
        DENSE,
        {**DENSE, "inputs": (0, 4, -1), "outputs": (6,)},
        {"opcode_index": 1, "inputs": (2, 7), "outputs": (8,), "builtin_options": ("MulOptions", {})},
        {"opcode_index": 2, "inputs": (6, 7), "outputs": (9,), "builtin_options": ("AddOptions", {})},
        {"opcode_index": 2, "inputs": (8, 9), "outputs": (10,), "builtin_options": ("AddOptions", {})},
    ]
    codes = [CODE, "MUL", "ADD"]
    floats = np.arange(1, UNITS + 1, dtype=np.float32).tobytes()
    content = file(tensors, calls, codes, outputs=(10,), buffers=[*BUFFERS, floats, (3 * SCALES).tobytes()])
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    x = RANDOM.standard_normal((2, DEPTH)).astype(np.float32)
    (expected,) = run_tflite(content, [x])
    (got,) = run_tflite(bytes(tfconvert.convert(path)), [x])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_many_scales(file: File, round_trip: RoundTrip) -> None:
    rows, scales = 700, RANDOM.uniform(0.05, 0.2, (700, 2)).astype(np.float16)
    layer = {**weight(3), "shape": (rows, DEPTH)}
    tensors = [X, layer, {"shape": (2, rows)}, {**scale(), "shape": scales.shape}]
    buffers = [bytes(rows * DEPTH // 2), scales.tobytes()]
    round_trip(file(tensors, [DENSE], [CODE], outputs=(2,), buffers=buffers))


ZEROS = {"shape": SCALES.shape, "type": "INT8", "buffer": 3, "name": "w_zero_points"}
OTHER = {**weight(4), "name": "v"}


@pytest.mark.parametrize(
    "tensors",
    [
        [X, weight(3), Y, scale()],
        [X, weight(3, zero_points=4), Y, scale(), ZEROS],
        [X, weight(4, zero_points=3), Y, {**ZEROS, "name": "z"}, scale("")],
        [X, weight(3, zero_points=-1, block_shape=(1, SIZE)), Y, scale()],
        [X, {**weight(3), "quantization": {**blocks(3)["quantization"], "min": (1.0,)}}, Y, scale()],
        [
            X,
            {
                **weight(3),
                "quantization": {
                    "details": ("MultiAxisQuantization", {"scales": 3, "block_size": 1, "quantized_dimensions": (0, 1)})
                },
            },
            Y,
            scale(),
        ],
    ],
)
def test_nothing_is_lost(file: File, round_trip: RoundTrip, tensors: list[dict[str, Any]]) -> None:
    module = round_trip(file(tensors, [DENSE], [CODE], outputs=(2,), buffers=BUFFERS))
    assert "quant.blockwise<i4:f32, 32" in str(module) or "quant.multi_axis<i4:f32, 1, [0, 1]" in str(module)


@pytest.mark.parametrize("names", [("a", "a"), ("a", "b"), ("w_scales", "v_scales")])
@pytest.mark.parametrize("shared", [False, True])
def test_scales_of_several_weights(file: File, round_trip: RoundTrip, names: tuple[str, str], shared: bool) -> None:
    tensors = [X, weight(3), Y, scale(names[0]), scale(names[1]), {**weight(3 if shared else 4), "name": "v"}, Y]
    calls = [DENSE, {**DENSE, "inputs": (0, 5, -1), "outputs": (6,)}]
    content = file(tensors, calls, [CODE], outputs=(2, 6), buffers=BUFFERS)
    again = export(round_trip(content)).to_bytes()
    (subgraph,) = import_tflite(again).ops
    weights = [value.element for op in subgraph.walk() for value in op.results if "pseudo" in op.name]
    assert all(isinstance(element, BlockwiseType) for element in weights)
    assert len(weights) == 2


def test_values_that_are_computed_have_blocks_too(file: File, round_trip: RoundTrip) -> None:
    wide = {"shape": (2, DEPTH), "type": "INT8", **blocks(2)}
    call = {"opcode_index": 0, "inputs": (0,), "outputs": (1,), "intermediates": (3,)}
    round_trip(file([wide, wide, scale("t0_scales"), wide], [call], ["ABS"], buffers=BUFFERS))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ([X, weight(7), Y], "there is no tensor 7"),
        ([X, weight(-2), Y], "there is no tensor -2"),
        ([X, weight(1), Y], "not floats"),
        ([X, weight(0), Y], "is not a constant"),
        ([X, weight(3, block_size=-4), Y, scale()], "blocks of -4 elements"),
        ([X, weight(3), Y, scale(buffer=3)], "has a buffer of"),
        ([X, weight(3), Y, {**scale(), "shape": (-1, 2)}], "is not a constant"),
        ([X, {**weight(3), "type": "FLOAT32"}, Y, scale()], "only integers"),
        (
            [X, weight(3, zero_points=4), Y, scale(), {**scale(), "name": "z"}],
            "'w' has zero points that are not integers",
        ),
        (
            [
                X,
                {
                    **weight(3),
                    "quantization": {
                        "details": ("MultiAxisQuantization", {"scales": 3, "quantized_dimensions": (0, 2)})
                    },
                },
                Y,
                scale(),
            ],
            r"along dimensions \[0, 2\], but its rank is 2",
        ),
    ],
)
def test_tensors_without_scales_are_rejected(file: File, tensors: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        import_tflite(file(tensors, [DENSE], [CODE], outputs=(2,), buffers=BUFFERS))
    assert caught.value.code == "malformed-tflite"


@pytest.mark.parametrize(
    ("scales", "zeros", "message"),
    [
        (np.nan, 0, "tensor 'w' has the scale nan"),
        (np.inf, 0, "tensor 'w' has the scale inf"),
        (-0.5, 0, "tensor 'w' has the scale -0.5"),
        (0.5, 8, "tensor 'w' has the zero point 8, which is not from -8 to 7"),
    ],
)
def test_blocks_of_damaged_numbers_are_rejected(file: File, scales: float, zeros: int, message: str) -> None:
    wrong, points = SCALES.copy(), np.zeros(SCALES.shape, np.int8)
    wrong[3, 1], points[5, 0] = scales, zeros
    tensors = [X, weight(3, zero_points=4), Y, scale(), ZEROS]
    buffers = [BUFFERS[0], wrong.tobytes(), points.tobytes()]
    with pytest.raises(ConversionError, match=message) as caught:
        import_tflite(file(tensors, [DENSE], [CODE], outputs=(2,), buffers=buffers))
    assert caught.value.code == "malformed-tflite"


def test_blocks_of_zeros_may_have_the_scale_zero(file: File, round_trip: RoundTrip) -> None:
    scales = SCALES.copy()
    scales[3, 1] = 0
    round_trip(file([X, weight(3), Y, scale()], [DENSE], [CODE], outputs=(2,), buffers=[BUFFERS[0], scales.tobytes()]))
