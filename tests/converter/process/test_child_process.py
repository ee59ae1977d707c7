"""Child processes: a hang ends in an error, a crash too, and none outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.converter.targets.litert import naps
from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.litert.runtime import failure
from tfconvert.schema.diagnostics import ConversionError, error


def test_values_come_back() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    texts = np.array([[b"a\xff", b""]], object)
    values = {"x": [array, texts, np.empty((0, 2), np.float32), b"\0\n"], 1: ("y", None, 0.5)}
    with Child() as child:
        _, found = child.call(naps.nap, 0, values)
    assert list(found) == ["x", 1]
    assert found[1] == ("y", None, 0.5)
    first, second, third, last = found["x"]
    assert (first.dtype, first.tolist()) == (array.dtype, array.tolist())
    assert second.tolist() == texts.tolist()
    assert (third.dtype, third.shape, last) == (np.float32, (0, 2), b"\0\n")


def test_objects_stay_in_the_process() -> None:
    with Child() as child:
        one, other = child.call(naps.Counter), child.call(naps.Counter)
        assert [child.call(naps.Counter.add, one, number) for number in (1, 2)] == [1, 3]
        assert child.call(naps.Counter.add, other, 5) == 5


def test_failures_are_those_of_the_function() -> None:
    with Child() as child:
        with pytest.raises(ConversionError) as refused:
            child.call(naps.fail, "bad-config")
        assert refused.value.diagnostics == error("bad-config", "told", hint="so").diagnostics
        with pytest.raises(ChildError) as caught:
            child.call(naps.fail, "")
        problem = failure(caught.value, "runtime-error", "the model can't be run", "so")
        assert problem.diagnostics == error("runtime-error", "the model can't be run: told", hint="so").diagnostics


def test_a_hang_ends_in_an_error_and_the_next_call_in_a_new_process() -> None:
    with Child(seconds=0.5) as child:
        with pytest.raises(ChildError) as caught:
            child.call(naps.nap, 60)
        problem = failure(caught.value, "runtime-error", "the model can't be run")
        assert problem.code == "litert-timeout"
        assert "within 0.5 s" in problem.diagnostics[0].message
    with Child() as child:
        assert child.call(naps.nap, 0)[1] is None


def test_a_crash_is_an_error() -> None:
    with Child() as child:
        with pytest.raises(ChildError) as caught:
            child.call(naps.nap, -1)
        assert caught.value.status == -signal.SIGKILL
        assert failure(caught.value, "runtime-error", "the model can't be run").code == "runtime-error"
        assert child.call(naps.nap, 0)[1] is None


_PARENT = """
from tests.converter.targets.litert import naps
from tfconvert.converter.process.child_process import Child
child = Child()
print(child.call(naps.nap, 0)[0], flush=True)
child.call(naps.nap, 60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end")
def test_a_busy_child_dies_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(pid, 0)
    parent.kill()
    parent.communicate()
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the child is still there")
