"""Folding has the same result for any number of cores."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np

from tests.converter.targets.litert.optimize.graph import Graph

REPOSITORY = __file__.rpartition("/tests/")[0]


def large_product() -> str:
    """Returns the hash of a file into whose bias the product of a shift and a large matrix is folded."""
    numbers = np.random.default_rng(0)
    graph = Graph((1, 3072))
    value = graph.op("add", graph.inputs[0], numbers.normal(size=3072).astype(np.float32))
    weights, bias = (numbers.normal(size=shape).astype(np.float32) for shape in ((768, 3072), (768,)))
    graph.returns(graph.op("fully_connected", value, weights, bias, shape=(1, 768)))
    graph.optimize()
    assert graph.names == ["fully_connected"]
    return hashlib.sha256(graph.content).hexdigest()


def test_the_file_does_not_tell_how_many_cores_there_were() -> None:
    script = "from tests.converter.targets.litert.optimize import test_same_bytes as own; print(own.large_product())"
    hashes = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={**os.environ, "OPENBLAS_NUM_THREADS": count},
        ).stdout
        for count in ("1", "2")
    }
    assert len(hashes) == 1
