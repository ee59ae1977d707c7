"""Strings against TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.cases import KernelCase, by_op
from tests.ops.comparison import Agree
from tfconvert.ops.call import Call
from tfconvert.ops.registry import evaluate
from tfconvert.schema.diagnostics import ConversionError

TEXT = np.array([[b"a", b""]], object)

ROWS: list[KernelCase] = [
    ("StringToHashBucket", (TEXT,), {"num_buckets": 1}),
    ("StringToHashBucketFast", (TEXT,), {"num_buckets": 1}),
    ("StringToHashBucketStrong", (TEXT,), {"num_buckets": 1, "key": (1, 2)}),
]


@by_op(ROWS)
def test_kernel(agree: Agree, case: KernelCase) -> None:
    agree(*case)


def test_strings_are_hashed_into_one_bucket_only() -> None:
    with pytest.raises(ConversionError, match="hashed in a way that only TensorFlow has"):
        evaluate(Call("StringToHashBucketFast", (np.array([b"a"], object),), {"num_buckets": 2}))
