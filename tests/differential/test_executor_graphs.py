"""Our executor against TensorFlow's on random graphs.

`python -m tests.differential.executor_graphs` compares any number of them.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.differential import executor_graphs
from tests.differential.random_executor_graphs import random_graph
from tfconvert.converter.executor import executor
from tfconvert.importers.graph_def import import_graph_def
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.selection import Selection


@pytest.fixture(scope="module")
def session(tf: ModuleType) -> executor_graphs.Session:
    return executor_graphs.Session(tf)


def test_random_graphs_agree_and_their_texts_are_read_back(tf: ModuleType) -> None:
    summary = executor_graphs.compare_graphs(tf, range(120), size=20)
    assert summary.problems == []
    assert summary.counts["dead outputs"] > 700
    assert summary.counts["loops"] > 100


@given(st.randoms(use_true_random=False))
@settings(max_examples=30, suppress_health_check=list(HealthCheck), print_blob=True)
def test_a_graph_on_which_we_differ_shrinks(session: executor_graphs.Session, random: Random) -> None:
    graph = random_graph(random, 12)
    summary = executor_graphs.Summary()
    summary.compare("the graph", graph, executor_graphs.import_whole(graph), session.run([graph])[0])
    assert summary.problems == []


def test_the_comparison_sees_a_difference(session: executor_graphs.Session) -> None:
    graph = random_graph(Random(0), 20)
    seen = session.run([graph])[0]
    output = "const0:0"
    summary = executor_graphs.Summary()
    module = executor_graphs.import_whole(graph)
    summary.compare("changed", graph, module, {**seen, output: [1, 2, 3]})
    summary.compare("left out", graph, module, {name: values for name, values in seen.items() if name != output})
    assert len(summary.problems) == 2


@pytest.fixture(scope="module")
def half_dead(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a graph whose `switch:0` is dead, and so is `exit`, of a loop that it enters."""
    with tf.Graph().as_default() as graph:
        off, _ = tf.raw_ops.Switch(data=tf.constant(1.0), pred=tf.constant(True), name="switch")
        tf.raw_ops.Exit(data=tf.raw_ops.Enter(data=off, frame_name="f"), name="exit")
    path: Path = tmp_path_factory.mktemp("graph") / "half_dead.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


@pytest.mark.parametrize("fetch", ["switch:0", "exit:0"])
def test_fetching_a_dead_value_is_an_error_in_both(tf: ModuleType, half_dead: Path, fetch: str) -> None:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(half_dead.read_bytes()), name="")
    with tf.compat.v1.Session(graph=graph) as running, pytest.raises(tf.errors.InvalidArgumentError):
        running.run(fetch)
    with pytest.raises(ConversionError) as caught:
        executor.run(import_graph_def(half_dead, Selection(outputs=[fetch])), "main", [])
    assert caught.value.code == "dead-fetch"


def test_fetching_a_live_value_is_no_error(half_dead: Path) -> None:
    assert executor.run(import_graph_def(half_dead, Selection(outputs=["switch:1"])), "main", []) == [1]
