"""Ops on strings; of hashes only those into one bucket are computed here."""

from __future__ import annotations

import numpy as np

from tfconvert.ops.call import Call, Results
from tfconvert.ops.declaration import op, ops_like
from tfconvert.ops.shape_functions import same


def _hash(call: Call) -> Results:
    if call.integer("num_buckets") != 1:
        raise call.bad("strings are hashed in a way that only TensorFlow has")
    return (np.zeros(call.inputs[0].shape, np.int64),)


OPS = (
    *ops_like("AsString StaticRegexFullMatch StringStrip", shape=same, verified=True),
    *ops_like(
        "RegexFullMatch RegexReplace StaticRegexReplace StringLength StringLower StringToNumber StringUpper", shape=same
    ),
    *ops_like("StringToHashBucket StringToHashBucketStrong", compute=_hash),
    op("StringToHashBucketFast", shape=same, compute=_hash),
)
