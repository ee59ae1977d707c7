"""Cases of legalizations of whole arrays: scans, sorting, segments, diagonals, rearranging, sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from tests.converter.targets.stablehlo.group import Case, Group, Input


def _scans(tf: ModuleType) -> Group:
    math = tf.math
    return Group(
        [Input("float32", ("n", 6, "m")), Input("int32", ("n", 3), -4, 4)],
        {
            "sum": lambda x, i: math.cumsum(x, 1),
            "Cumsum_sum_open": lambda x, i: math.cumsum(x, 2),
            "Cumsum_exclusive": lambda x, i: math.cumsum(x, 1, exclusive=True),
            "Cumsum_reverse": lambda x, i: math.cumsum(x, 0, reverse=True),
            "Cumsum_both": lambda x, i: math.cumsum(x, -1, exclusive=True, reverse=True),
            "Cumprod_product": lambda x, i: math.cumprod(x, 1),
            "Cumprod_product_open": lambda x, i: math.cumprod(x, 2),
            "CumulativeLogsumexp_powers": lambda x, i: math.cumulative_logsumexp(x, 1),
            "CumulativeLogsumexp_powers_open": lambda x, i: math.cumulative_logsumexp(x, 2, exclusive=True),
            "Cumsum_integers": lambda x, i: math.cumsum(i, 0),
            "Cumprod_integer_product": lambda x, i: math.cumprod(i, 1),
        },
    )


def _sorting(tf: ModuleType) -> Group:
    raw, math = tf.raw_ops, tf.math
    return Group(
        [Input("float32", ("n", 7)), Input("int32", ("n",), 0, 6), Input("int32", ("m", 5), -3, 3)],
        {
            "in_top": lambda x, t, i: math.in_top_k(t, x, 3),
            "nth": lambda x, t, i: raw.NthElement(input=x, n=2),
            "NthElement_nth_reverse": lambda x, t, i: raw.NthElement(input=x, n=t[0], reverse=True),
            "lower": lambda x, t, i: tf.searchsorted([-1.0, 0.0, 0.0, 1.5], x[0]),
            "upper": lambda x, t, i: tf.searchsorted(tf.constant([[-2, 0, 0, 1]]), i[:1], "right"),
            "Bucketize_buckets": lambda x, t, i: raw.Bucketize(input=x, boundaries=[-1.0, 0.0, 0.5]),
            "Bucketize_integer_buckets": lambda x, t, i: raw.Bucketize(input=i, boundaries=[-1.0, 0.5, 2.0]),
            "ApproxTopK_approximate": lambda x, t, i: raw.ApproxTopK(input=x, k=2, reduction_dimension=-1)[0],
        },
    )


def _greatest(tf: ModuleType) -> Group:
    raw, math = tf.raw_ops, tf.math
    return Group(
        [Input("float32", ("n", 7)), Input("int32", ("m", 5), -3, 3)],
        {
            "TopKV2_values": lambda x, i: math.top_k(x, 3)[0],
            "TopKV2_places": lambda x, i: math.top_k(x, 3)[1],
            "TopKV2_ties": lambda x, i: math.top_k(i, 4)[1],
            "TopKV2_places64": lambda x, i: raw.TopKV2(input=x, k=2, index_type=tf.int64).indices,
            "TopKV2_sort": lambda x, i: tf.sort(x),
            "TopKV2_descending": lambda x, i: tf.sort(i, 0, "DESCENDING"),
            "TopKV2_argsort": lambda x, i: tf.argsort(x, stable=True),
            "TopKV2_argsort_axis": lambda x, i: tf.argsort(i, 0, stable=True),
            "TopKV2_open_k": lambda x, i: math.top_k(x[0], tf.minimum(tf.shape(i)[0], 2))[1],
            "TopKV2_all": lambda x, i: math.top_k(i[:, 0], tf.shape(i)[0])[1],
        },
        in_xla=False,
    )


def _segment_reductions(tf: ModuleType) -> Group:
    raw, math = tf.raw_ops, tf.math
    return Group(
        [Input("float32", (6, "n")), Input("int32", (6,), -1, 4), Input("int32", ("m", 4), 0, 5)],
        {
            **{
                f"UnsortedSegment_{name}": _segments(getattr(math, f"unsorted_segment_{name}"))
                for name in ("sum", "prod", "max", "min", "mean", "sqrt_n")
            },
            "UnsortedSegmentSum_open_count": lambda x, i, b: math.unsorted_segment_sum(x, i, tf.shape(b)[0] + 4),
            "of_rows": lambda x, i, b: math.unsorted_segment_sum(tf.ones_like(b), b, 7),
            **{
                f"Segment_{name}": _sorted_segments(getattr(math, f"segment_{name}"))
                for name in ("sum", "prod", "max", "min", "mean")
            },
            **{
                f"SparseSegment_{name}": _sparse_segments(getattr(tf.sparse, f"segment_{name}"))
                for name in ("sum", "mean", "sqrt_n")
            },
            "SparseSegmentSumWithNumSegments_sparse_open": lambda x, i, b: tf.sparse.segment_sum(
                x, b[:, 0], tf.range(tf.shape(b)[0]), num_segments=tf.shape(b)[0] + 1
            ),
            "Bincount_counts": lambda x, i, b: raw.Bincount(arr=b, size=7, weights=tf.zeros([0])),
            "Bincount_weighted": lambda x, i, b: raw.Bincount(arr=b[0], size=5, weights=[1.0, 2.0, 3.0, 4.0]),
            "DenseBincount_dense_counts": lambda x, i, b: raw.DenseBincount(
                input=b, size=6, weights=tf.zeros([0], tf.int32)
            ),
            "DenseBincount_binary": lambda x, i, b: raw.DenseBincount(
                input=b, size=6, weights=tf.zeros([0], tf.int32), binary_output=True
            ),
            "dense": lambda x, i, b: raw.SparseToDense(
                sparse_indices=[[0, 1], [2, 0]], output_shape=[3, 2], sparse_values=x[:2, 0], default_value=-1.0
            ),
            "SparseToDense_dense_vector": lambda x, i, b: raw.SparseToDense(
                sparse_indices=[1, 4], output_shape=[5], sparse_values=2.0, default_value=x[0, 0]
            ),
            "sub": lambda x, i, b: tf.tensor_scatter_nd_sub(x, [[0], [2]], x[:2]),
            "max": lambda x, i, b: tf.tensor_scatter_nd_max(x, [[0], [2]], x[3:5]),
            "min": lambda x, i, b: tf.tensor_scatter_nd_min(x, [[0], [2]], x[3:5]),
            "depth": lambda x, i, b: tf.one_hot(i, tf.shape(b)[0] + 2),
        },
    )


def _diagonals(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("n", 4, 3)), Input("float32", ("n", "m")), Input("float32", ("m", "m"))],
        {
            "band": lambda x, d, s: tf.linalg.band_part(x, 1, 0),
            "MatrixBandPart_upper": lambda x, d, s: tf.linalg.band_part(s, 0, -1),
            "MatrixBandPart_computed": lambda x, d, s: tf.linalg.band_part(x, tf.shape(s)[0] - 4, 1),
            "diag": lambda x, d, s: tf.linalg.diag(d),
            "part": lambda x, d, s: tf.linalg.diag_part(s),
            "MatrixDiagPartV3_trace": lambda x, d, s: tf.linalg.trace(s),
            "MatrixDiagPartV3_part_of_rows": lambda x, d, s: tf.linalg.diag_part(x),
            "MatrixDiagPartV3_above": lambda x, d, s: tf.linalg.diag_part(x, k=1),
            "MatrixDiagPartV3_below": lambda x, d, s: tf.linalg.diag_part(x, k=-2),
            "MatrixDiagPartV3_parts": lambda x, d, s: tf.linalg.diag_part(x, k=(-2, 1), padding_value=7.0),
            "MatrixDiagPartV3_parts_left": lambda x, d, s: tf.linalg.diag_part(x, k=(-1, 2), align="LEFT_RIGHT"),
            "set": lambda x, d, s: tf.linalg.set_diag(s, d[0]),
            "MatrixSetDiagV3_set_above": lambda x, d, s: tf.linalg.set_diag(x, x[:, 0, :2], k=1),
            "MatrixDiagV3_diag_above": lambda x, d, s: tf.linalg.diag(x[:, 0], k=2),
            "MatrixDiagV3_diag_sized": lambda x, d, s: tf.linalg.diag(
                x[:, 0, :], k=-1, num_rows=5, num_cols=3, padding_value=9.0
            ),
            "MatrixDiagV3_diags": lambda x, d, s: tf.linalg.diag(x[:, :3], k=(-1, 1), align="LEFT_LEFT"),
            "Diag_tensor": lambda x, d, s: tf.linalg.tensor_diag(d[0]),
            "Diag_wide_tensor": lambda x, d, s: tf.linalg.tensor_diag(x[0]),
            "DiagPart_tensor_part": lambda x, d, s: tf.linalg.tensor_diag_part(s),
            "MatrixSetDiag_old": lambda x, d, s: raw.MatrixSetDiag(
                input=raw.MatrixDiag(diagonal=d), diagonal=raw.MatrixDiagPart(input=raw.MatrixDiag(diagonal=d))
            ),
        },
    )


def _fixed_diagonals(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", (2, 4, 3))],
        {
            "set": lambda x: tf.linalg.set_diag(x, x[:, :2], k=(-1, 0)),
            "MatrixSetDiagV3_set_left": lambda x: tf.linalg.set_diag(x, x[:, :2, :2], k=(1, 2), align="LEFT_LEFT"),
            "MatrixDiagV3_wide": lambda x: tf.linalg.diag(x[..., 0], k=1, num_rows=4),
            "MatrixDiagV3_tall": lambda x: tf.linalg.diag(x[..., 0], k=-1, num_cols=4),
        },
        is_open=False,
    )


def _complex_numbers(tf: ModuleType) -> Group:
    math = tf.math
    return Group(
        [Input("float32", ("n", 8)), Input("float32", ("n", 8))],
        {
            "real": lambda x, y: math.real(tf.complex(x, y)),
            "imag": lambda x, y: math.imag(tf.complex(x, y)),
            "conj": lambda x, y: math.conj(tf.complex(x, y)) * tf.complex(y, x),
            "angle": lambda x, y: math.angle(tf.complex(x, y)),
            "abs": lambda x, y: tf.abs(tf.complex(x, y)),
            "ConjugateTranspose_adjoint": lambda x, y: tf.linalg.adjoint(tf.complex(x, y)),
            "fft": lambda x, y: tf.signal.fft(tf.complex(x, y)),
            "ifft": lambda x, y: tf.signal.ifft(tf.complex(x, y)[:, :6]),
            "fft2": lambda x, y: tf.signal.fft2d(tf.reshape(tf.complex(x, y), (-1, 4, 2))),
            "rfft": lambda x, y: tf.signal.rfft(x),
            "rfft_padded": lambda x, y: tf.signal.rfft(x, [12]),
            "rfft_cut": lambda x, y: tf.signal.rfft(x, [5]),
            "irfft": lambda x, y: tf.signal.irfft(tf.complex(x, y), [6]),
            "rfft2": lambda x, y: tf.signal.rfft2d(tf.reshape(x, (-1, 2, 4))),
            "irfft2": lambda x, y: tf.signal.irfft2d(tf.signal.rfft2d(tf.reshape(x, (-1, 2, 4)))),
        },
    )


def _rearranging(tf: ModuleType) -> Group:
    raw, math = tf.raw_ops, tf.math
    return Group(
        [Input("float32", ("n", 6, "m")), Input("int32", ("n",), 1, 6), Input("int32", (4,), 0, 5)],
        {
            "roll": lambda x, t, i: tf.roll(x, 2, 1),
            "roll_open": lambda x, t, i: tf.roll(x, (-1, 3), (0, 2)),
            "roll_computed": lambda x, t, i: tf.roll(x, t[0], 1),
            "ReverseSequence_reverse_rows": lambda x, t, i: tf.reverse_sequence(x, t, 1, 0),
            "ReverseSequence_reverse_columns": lambda x, t, i: tf.reverse_sequence(
                x, tf.ones_like(x[0, 0], tf.int32) * 3, 1, 2
            ),
            "InvertPermutation_inverse": lambda x, t, i: math.invert_permutation(tf.range(tf.shape(x)[0])[::-1]),
            "old_reverse": lambda x, t, i: raw.Reverse(tensor=x, dims=[False, True, False]),
            "ConcatOffset_offsets": lambda x, t, i: raw.ConcatOffset(concat_dim=1, shape=[tf.shape(x), tf.shape(x)])[1],
            "BroadcastArgs_shape": lambda x, t, i: tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(x[0])),
            "BroadcastArgs_lines": lambda x, t, i: tf.linspace(x[0, 0, 0], 3.0, 7),
            "LinSpace_line": lambda x, t, i: raw.LinSpace(start=x[0, 0, 0], stop=5.0, num=1),
            "unravel": lambda x, t, i: tf.unravel_index(i, [2, 3]),
            "cross": lambda x, t, i: tf.linalg.cross(x[:, :3, 0], x[:, 3:, 0]),
            "DataFormatVecPermute_vector": lambda x, t, i: raw.DataFormatVecPermute(x=i),
            "DataFormatDimMap_axis": lambda x, t, i: raw.DataFormatDimMap(x=i - 3),
            "stitch": lambda x, t, i: tf.dynamic_stitch([[0, 2, 1], [4, 3, 1]], [x[0, :3], x[0, 3:]]),
            "PopulationCount_ones": lambda x, t, i: raw.PopulationCount(x=i),
            "old_concat": lambda x, t, i: raw.Concat(concat_dim=1, values=[x, x]),
        },
    )


def _computed_sizes(tf: ModuleType) -> Group:
    raw, math = tf.raw_ops, tf.math
    return Group(
        [Input("float32", ("n", 4)), Input("int32", ("m",), 0, 3), Input("int32", (5,), 0, 4)],
        {
            "where": lambda x, i, k: tf.where(x > 0),
            "where_vector": lambda x, i, k: tf.where(i)[:, 0],
            "mask": lambda x, i, k: tf.boolean_mask(x, x[:, 0] > 0),
            "unique": lambda x, i, k: tf.unique(i)[0],
            "numbers": lambda x, i, k: tf.unique(k)[1],
            "counts": lambda x, i, k: tf.unique_with_counts(i)[2],
            "unique_along": lambda x, i, k: raw.UniqueV2(x=i, axis=[0]).y,
            "ListDiff_difference": lambda x, i, k: raw.ListDiff(x=k, y=i).out,
            "ListDiff_places": lambda x, i, k: raw.ListDiff(x=k, y=i).idx,
            "DynamicPartition_parts": lambda x, i, k: tf.dynamic_partition(tf.transpose(x), [1, 0, 1, 1], 3)[1],
            "DynamicPartition_open_parts": lambda x, i, k: tf.dynamic_partition(i, i, 4)[2],
            "segments": lambda x, i, k: math.segment_sum(tf.ones_like(i), tf.sort(i)),
            "SegmentMean_means": lambda x, i, k: math.segment_mean(tf.cast(k, tf.float32), tf.sort(k)),
            "sum": lambda x, i, k: tf.reduce_sum(tf.gather_nd(x, tf.where(x > 0.5)) * 2.0),
            "Where_count": lambda x, i, k: tf.shape(tf.where(x > 0))[0],
            "Range_steps": lambda x, i, k: tf.range(0.0, tf.cast(tf.shape(i)[0], tf.float32), 0.75),
            "Range_computed_steps": lambda x, i, k: tf.range(k[0], 9, k[1] + 1),
        },
        in_xla=False,
    )


def _bytes(tf: ModuleType) -> Group:
    return Group(
        [Input("uint8", ("n", 5, "h", 2), 0, 200), Input("uint8", ("n",), 0, 4)],
        {
            "AddV2_sum": lambda x, k: x + x,
            "FloorDiv_quotient": lambda x, k: x // (x + 1),
            "FloorMod_rest": lambda x, k: x % 7,
            "Max_largest": lambda x, k: tf.reduce_max(x, 1),
            "StridedSlice_part": lambda x, k: x[:, :, 1:-1],
            "Reshape_rows": lambda x, k: tf.reshape(x, [tf.shape(x)[0], -1]),
            "ConcatV2_two": lambda x, k: tf.concat([x, x], 2),
            "pad": lambda x, k: tf.pad(x, [[0, 0], [1, 1], [tf.shape(k)[0], 1], [0, 0]]),
            "Cast_float": lambda x, k: tf.cast(x, tf.float32) + tf.reshape(tf.cast(k, tf.float32), [-1, 1, 1, 1]),
            "GatherV2_columns": lambda x, k: tf.gather(x, tf.range(tf.shape(x)[2])[::-1], axis=2),
            "select": lambda x, k: tf.where(x > 100, x, tf.zeros_like(x)),
            "BroadcastTo_spread": lambda x, k: tf.broadcast_to(x[:, :1], tf.shape(x)),
            "mask": lambda x, k: tf.boolean_mask(k, k > 1),
            "Cumsum_scan": lambda x, k: tf.cumsum(k),
            "one_hot": lambda x, k: tf.one_hot(k, 5),
            "update": lambda x, k: tf.tensor_scatter_nd_update(x, [[0]], 2 * x[:1]),
        },
        in_xla=False,
    )


def _random_numbers(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("n", 3, "m")), Input("int32", (2,), -50, 50)],
        {
            "uniform": lambda x, s: tf.random.stateless_uniform(tf.shape(x), s),
            "normal": lambda x, s: tf.random.stateless_normal([7], s),
            "StatelessRandomUniformIntV2_whole": lambda x, s: tf.random.stateless_uniform([2, 5], s, -3, 9, tf.int32),
            "StatelessRandomUniform_old": lambda x, s: raw.StatelessRandomUniform(shape=tf.shape(x), seed=s),
            "StatelessRandomNormal_old_normal": lambda x, s: raw.StatelessRandomNormal(
                shape=[3, 2], seed=tf.cast(s, tf.int64)
            ),
            "StatelessRandomNormalV2_scaled": lambda x, s: tf.random.stateless_normal(tf.shape(x)[:2], s, 3.0, 0.5),
            "truncated": lambda x, s: tf.random.stateless_truncated_normal(tf.shape(x), s),
            "StatelessTruncatedNormalV2_many_truncated": lambda x, s: tf.random.stateless_truncated_normal(
                [3, 501], s, 1.0, 0.1
            ),
            "StatelessTruncatedNormal_old_truncated": lambda x, s: raw.StatelessTruncatedNormal(shape=[6], seed=s),
            "full": lambda x, s: raw.StatelessRandomUniformFullInt(shape=tf.shape(x)[:2], seed=s, dtype=tf.int32),
            "StatelessRandomUniformFullIntV2_unsigned": lambda x, s: tf.cast(
                tf.random.stateless_uniform([7], s, None, None, tf.uint32), tf.float32
            ),
            "StatelessMultinomial_classes": lambda x, s: raw.StatelessMultinomial(
                logits=x[..., 0], num_samples=9, seed=s
            ),
            "StatelessMultinomial_unlike_classes": lambda x, s: raw.StatelessMultinomial(
                logits=tf.math.log(x[..., 0]), num_samples=tf.shape(x)[2], seed=s, output_dtype=tf.int32
            ),
            "StatelessRandomGetKeyCounterAlg_algorithm": lambda x, s: tf.cast(
                raw.StatelessRandomGetKeyCounterAlg(seed=s).alg, tf.int32
            ),
        },
        on_buffers=False,
    )


def _numbers_of_the_engine(tf: ModuleType) -> Group:
    math = tf.math
    return Group(
        [Input("float32", ("n", 3, "m"))],
        {
            "RandomUniform_range": lambda x: tf.math.abs(tf.random.uniform(tf.shape(x)) - 0.5) <= 0.5,
            "RandomStandardNormal_finite": lambda x: math.is_finite(tf.random.normal([3, 4])),
            "RandomUniformInt_between": lambda x: tf.random.uniform([9], 2, 5, tf.int32) // 5,
            "truncated": lambda x: tf.abs(tf.random.truncated_normal(tf.shape(x), 3.0, 0.5) - 3.0) <= 1.0,
            "Multinomial_classes": lambda x: (
                tf.random.categorical(tf.where([True, False, True], x[:, :, 0], -1e9), 4) % 2
            ),
            "RandomShuffle_shuffled": lambda x: tf.reduce_sum(2 ** tf.random.shuffle(tf.range(7))),
            "RandomShuffle_shuffled_rows": lambda x: tf.shape(tf.random.shuffle(x)),
        },
        in_executor=False,
    )


def _letters_and_ranges(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", 4, 4)), Input("float32", ("n", "m"))],
        {
            "Einsum_trace": lambda x, y: tf.einsum("nii->n", x),
            "Einsum_diagonal": lambda x, y: tf.einsum("nii->ni", x),
            "Einsum_of_diagonal": lambda x, y: tf.einsum("nii,nm->mi", x, y),
            "Einsum_three": lambda x, y: tf.einsum("nij,njk,nm->nikm", x, x, y),
            "Einsum_chain": lambda x, y: tf.einsum("nij,jk,nk->i", x, x[0], x[:, 0]),
            "Range_even": lambda x, y: tf.range(1, tf.shape(y)[1] + 3, 2),
            "Range_back": lambda x, y: tf.range(tf.shape(y)[1], -2, -3),
        },
    )


def _linear_algebra(tf: ModuleType) -> Group:
    return Group(
        [Input("float32", ("n", 4, 4)), Input("float32", ("n", 4, 2))],
        {
            "inverse": lambda x, y: tf.linalg.inv(x + 3 * tf.eye(4)),
            "MatrixInverse_pivots": lambda x, y: tf.linalg.inv(x[:, ::-1] + 3 * tf.eye(4)[::-1]),
            "solve": lambda x, y: tf.linalg.solve(x + 3 * tf.eye(4), y),
            "MatrixSolve_adjoint": lambda x, y: tf.linalg.solve(x + 3 * tf.eye(4), y, adjoint=True),
            "cholesky": lambda x, y: tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True) + tf.eye(4)),
            "MatrixTriangularSolve_triangle": lambda x, y: tf.linalg.triangular_solve(x + 3 * tf.eye(4), y),
            "MatrixTriangularSolve_upper": lambda x, y: tf.linalg.triangular_solve(
                x + 3 * tf.eye(4), y, lower=False, adjoint=True
            ),
            "TridiagonalMatMul_by_batch": lambda x, y: tf.raw_ops.TridiagonalMatMul(
                superdiag=x[:, :1], maindiag=x[:, 1:2], subdiag=x[:, 2:3], rhs=y
            ),
            "TridiagonalMatMul_of_batch": lambda x, y: tf.linalg.tridiagonal_matmul(
                tf.unstack(tf.transpose(x)[:, :3], axis=1), tf.transpose(y, [1, 0, 2]), diagonals_format="sequence"
            ),
        },
    )


def _training(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("n", 4)), Input("float32", ("n", 4), 0.2, 1), Input("int32", ("n",), 0, 3)],
        {
            "SoftmaxCrossEntropyWithLogits_loss": lambda x, y, i: tf.nn.softmax_cross_entropy_with_logits(y, x),
            "SoftmaxCrossEntropyWithLogits_slope": lambda x, y, i: (
                raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y).backprop
            ),
            "SparseSoftmaxCrossEntropyWithLogits_sparse_loss": lambda x, y, i: (
                tf.nn.sparse_softmax_cross_entropy_with_logits(i, x)
            ),
            **{
                name: _gradient(getattr(raw, f"{name}Grad"), "features")
                for name in ("Relu", "Relu6", "LeakyRelu", "Softplus", "Softsign")
            },
            **{name: _gradient(getattr(raw, f"{name}Grad"), "outputs") for name in ("Elu", "Selu")},
            **{
                name: _slope(getattr(raw, f"{name}Grad"))
                for name in ("Inv", "Reciprocal", "Rsqrt", "Sigmoid", "Sqrt", "Tanh")
            },
            "bias": lambda x, y, i: raw.BiasAddGrad(out_backprop=x),
        },
    )


def _gradient(run: Case, name: str) -> Case:
    return lambda x, y, i: run(gradients=y, **{name: x})


def _slope(run: Case) -> Case:
    return lambda x, y, i: run(y=y, dy=x)


def _segments(run: Case) -> Case:
    return lambda x, i, b: run(x, i, 5)


def _sorted_segments(run: Case) -> Case:
    return lambda x, i, b: run(x, [0, 0, 1, 3, 3, 3])


def _sparse_segments(run: Case) -> Case:
    return lambda x, i, b: run(x, [5, 1, 1, 0], [0, 0, 2, 2])


GROUPS: Mapping[str, Callable[[ModuleType], Group]] = {
    "scans": _scans,
    "sorting": _sorting,
    "greatest": _greatest,
    "segments": _segment_reductions,
    "diagonals": _diagonals,
    "fixed diagonals": _fixed_diagonals,
    "complex numbers": _complex_numbers,
    "rearranging": _rearranging,
    "computed sizes": _computed_sizes,
    "bytes": _bytes,
    "random numbers": _random_numbers,
    "numbers of the engine": _numbers_of_the_engine,
    "letters and ranges": _letters_and_ranges,
    "linear algebra": _linear_algebra,
    "training": _training,
}
"""The groups by their names."""
