"""Cases of sparse tensors and of ragged ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from tests.converter.targets.stablehlo.group import Case, Group, Input, Tensor

_INDICES = [[0, 3], [2, 0], [2, 1], [3, 3]]


def _sparse_tensors(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", (4,)), Input("float32", (4, "m")), Input("int64", (4, 2), 0, 3)],
        {
            **{
                f"SparseTensorDenseMatMul_product_{one}_{other}": _product(
                    raw.SparseTensorDenseMatMul, _INDICES, one, other
                )
                for one in (False, True)
                for other in (False, True)
            },
            "SparseTensorDenseMatMul_computed_product": lambda v, x, i: raw.SparseTensorDenseMatMul(
                a_indices=i, a_values=v, a_shape=[5, 4], b=x
            ),
            "SparseMatMul_dense_product": lambda v, x, i: raw.SparseMatMul(a=x, b=x, transpose_b=True),
            "sum": lambda v, x, i: raw.SparseReduceSum(
                input_indices=_INDICES, input_values=v, input_shape=[4, 5], reduction_axes=[1]
            ),
            "SparseReduceSum_sum_kept": lambda v, x, i: raw.SparseReduceSum(
                input_indices=_INDICES, input_values=v, input_shape=[4, 5], reduction_axes=[-2], keep_dims=True
            ),
            "SparseReduceSum_sum_of_all": lambda v, x, i: raw.SparseReduceSum(
                input_indices=_INDICES, input_values=v, input_shape=[4, 5], reduction_axes=[0, 1]
            ),
            "SparseDenseCwiseMul_scaled": lambda v, x, i: raw.SparseDenseCwiseMul(
                sp_indices=_INDICES, sp_values=v, sp_shape=[4, 4], dense=x[:, :1]
            ),
            "SparseDenseCwiseDiv_divided": lambda v, x, i: raw.SparseDenseCwiseDiv(
                sp_indices=_INDICES, sp_values=v, sp_shape=[4, 4], dense=v
            ),
            "SparseDenseCwiseAdd_added": lambda v, x, i: raw.SparseDenseCwiseAdd(
                sp_indices=_INDICES, sp_values=v, sp_shape=[4, 4], dense=x[:, :1] + tf.ones((4, 4))
            ),
            "SparseTensorDenseAdd_added_to_dense": lambda v, x, i: raw.SparseTensorDenseAdd(
                a_indices=_INDICES, a_values=v, a_shape=[4, 4], b=tf.ones((4, 4)) * x[0, 0]
            ),
            "SparseReshape_places": lambda v, x, i: raw.SparseReshape(
                input_indices=i, input_shape=[4, 6], new_shape=[2, -1, 3]
            )[0],
            "shape": lambda v, x, i: raw.SparseReshape(input_indices=i, input_shape=[4, 6], new_shape=[2, -1, 3])[1],
            "SparseReorder_ordered": lambda v, x, i: raw.SparseReorder(
                input_indices=i, input_values=v, input_shape=[4, 4]
            )[0],
            "SparseReorder_ordered_values": lambda v, x, i: (
                tf.sparse.reorder(tf.SparseTensor([[2, 1], [0, 3], [2, 0], [1, 1]], v, (4, 4))).values
            ),
        },
    )


def _rows_of_sparse_tensors(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", ("n",)), Input("int64", ("n",), 0, 6), Input("int64", (2,), 8, 9)],
        {
            **{
                f"SparseFillEmptyRows_filled_{index}": _filled(raw.SparseFillEmptyRows, tf, index) for index in range(4)
            },
            "to_dense": lambda v, i, s: tf.sparse.to_dense(
                tf.sparse.reorder(tf.SparseTensor(tf.stack([i, tf.range(tf.size(i, tf.int64))], 1), v, s))
            ),
        },
        in_xla=False,
    )


def _ragged_tensors(tf: ModuleType) -> Group:
    raw = tf.raw_ops
    return Group(
        [Input("float32", (9, "m")), Input("int32", ("n",), 0, 3), Input("int32", ("n",), 1, 4)],
        {
            "RaggedTensorToTensor_dense": lambda x, i, j: _ragged(tf, x).to_tensor(),
            "RaggedTensorToTensor_dense_of_rows": lambda x, i, j: tf.RaggedTensor.from_value_rowids(
                x[:, 0], tf.sort(tf.constant([0, 0, 1, 3, 3, 3, 3, 5, 5])), 7
            ).to_tensor(-1.0),
            "RaggedTensorToTensor_wide": lambda x, i, j: _ragged(tf, x[:, 0]).to_tensor(7.0, shape=[None, 6]),
            "RaggedTensorToTensor_cut": lambda x, i, j: _ragged(tf, x[:, 0]).to_tensor(7.0, shape=[3, 2]),
            "RaggedTensorToTensor_by_size": lambda x, i, j: _ragged(tf, x[:, 0]).to_tensor(
                0.0, shape=tf.stack([tf.shape(i, tf.int64)[0] + 2, -1])
            ),
            "RaggedTensorToTensor_nested": lambda x, i, j: tf.RaggedTensor.from_row_splits(
                _ragged(tf, x), [0, 2, 2, 4]
            ).to_tensor(3.0),
            "RaggedTensorToTensor_nested_rows": lambda x, i, j: tf.RaggedTensor.from_value_rowids(
                _ragged(tf, x[:, 0]), [0, 2, 2, 3], 5
            ).to_tensor(3.0),
            "sparse": lambda x, i, j: _ragged(tf, x[:, 0]).to_sparse().indices,
            "RaggedTensorToSparse_sparse_shape": lambda x, i, j: _ragged(tf, x[:, 0]).to_sparse().dense_shape,
            "RaggedGather_rows": lambda x, i, j: tf.gather(_ragged(tf, x), i).flat_values,
            "RaggedGather_row_bounds": lambda x, i, j: tf.gather(_ragged(tf, x), i).row_splits,
            "RaggedGather_nested_gathered": lambda x, i, j: tf.gather(
                tf.RaggedTensor.from_row_splits(_ragged(tf, x), [0, 2, 2, 3, 4]), i
            ).to_tensor(),
            "RaggedRange_ranges": lambda x, i, j: tf.ragged.range(i, i + j).to_tensor(),
            "RaggedRange_steps": lambda x, i, j: tf.ragged.range(i, 9, j).flat_values,
            "RaggedRange_back": lambda x, i, j: tf.ragged.range(tf.cast(j, tf.float32), -1.0, -0.75).row_splits,
            "RaggedBincount_counts": lambda x, i, j: raw.RaggedBincount(
                splits=[0, tf.shape(i, tf.int64)[0], tf.shape(i, tf.int64)[0]],
                values=i,
                size=5,
                weights=tf.constant([], tf.float32),
            ),
            "RaggedBincount_binary": lambda x, i, j: raw.RaggedBincount(
                splits=[0, 1, tf.shape(i, tf.int64)[0]],
                values=i,
                size=4,
                weights=tf.constant([], tf.int32),
                binary_output=True,
            ),
        },
        in_xla=False,
    )


def _product(run: Case, indices: Tensor, one: bool, other: bool) -> Case:
    return lambda v, x, i: run(
        a_indices=indices,
        a_values=v,
        a_shape=[4, 4],
        b=x[:, :1] * x[:, 0] if other else x,
        adjoint_a=one,
        adjoint_b=other,
    )


def _filled(run: Case, tf: ModuleType, index: int) -> Case:
    def case(values: Tensor, rows: Tensor, shape: Tensor) -> Tensor:
        indices = tf.stack([tf.sort(rows), tf.range(tf.size(rows, tf.int64))], 1)
        return run(indices=indices, values=values, dense_shape=shape, default_value=-5.0)[index]

    return case


def _ragged(tf: ModuleType, values: Tensor) -> Tensor:
    return tf.RaggedTensor.from_row_splits(values, [0, 3, 3, 4, 9])


GROUPS: Mapping[str, Callable[[ModuleType], Group]] = {
    "sparse tensors": _sparse_tensors,
    "rows of sparse tensors": _rows_of_sparse_tensors,
    "ragged tensors": _ragged_tensors,
}
"""The groups by their names."""
