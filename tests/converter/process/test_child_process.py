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

_NAPS = naps.__name__


def test_arrays_come_back() -> None:
    with Child(_NAPS) as child:
        header, (array,) = child.ask({"nap": 0}, [np.arange(6, dtype=np.int16).reshape(2, 3)])
    assert header["nap"] == 0
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_hang_ends_in_an_error_and_the_next_request_in_a_new_process() -> None:
    with Child(_NAPS, seconds=0.5) as child:
        with pytest.raises(ChildError) as caught:
            child.ask({"nap": 60})
        problem = failure(caught.value, "runtime-error", "the model can't be run")
        assert problem.code == "litert-timeout"
        assert "within 0.5 s" in problem.diagnostics[0].message
    with Child(_NAPS) as child:
        assert child.ask({"nap": 0})[0]["nap"] == 0


def test_a_crash_is_an_error() -> None:
    with Child(_NAPS) as child:
        with pytest.raises(ChildError) as caught:
            child.ask({"nap": -1})
        assert caught.value.status == -signal.SIGKILL
        assert failure(caught.value, "runtime-error", "the model can't be run").code == "runtime-error"
        assert child.ask({"nap": 0})[0]["nap"] == 0


_PARENT = f"""
import os, signal
from tfconvert.converter.process.child_process import Child
child = Child({_NAPS!r})
print(child.ask({{"nap": 0}})[0]["pid"], flush=True)
child.ask({{"nap": 60}})
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
