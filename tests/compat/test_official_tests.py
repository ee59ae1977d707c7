"""The page of the official tests, and the program that runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat import official_tests
from tests.compat.official_tests import OLD, PAGE, Reason, Row


def test_the_page_is_made_of_the_verdicts() -> None:
    assert PAGE.read_text("utf-8") == official_tests.page(official_tests.rows())


def test_every_test_that_fails_has_a_reason() -> None:
    found, known = official_tests.rows(), official_tests.reasons()
    assert len({(row.file, row.test, row.keras) for row in found}) == len(found) > 500
    assert not [row for row in found if row.differs and official_tests.reason_of(row, known) is None]
    assert {reason.stance for reason in known} <= set(official_tests._STANCES)


def test_a_reason_is_found_by_patterns() -> None:
    row = Row("lite_test", "FromSessionTest.testGraphviz", OLD, "ok", "fail")
    first, second = Reason("differs", "a", ("*.testOther *", f"lite_test *viz {OLD}")), Reason("refused", "b", ("*",))
    assert official_tests.reason_of(row, [first, second]) is first
    assert official_tests.reason_of(row._replace(keras="Keras 3"), [first, second]) is second
    assert official_tests.reason_of(row, []) is None
    assert row.differs
    assert not row._replace(ours="ok").differs
    assert not row._replace(official="fail").differs


_TESTS = """
import os
import unittest

from tflite.python import lite
from tflite.python.convert import ConverterError
from tflite.python.testdata import double_op


class GoodTest(unittest.TestCase):
    def testClass(self):
        self.assertTrue(lite.TFLiteConverter.__module__.startswith("tfconvert."))
        self.assertRaises(ConverterError, lite.TFLiteConverterV2.from_saved_model, "none")

    def testCompiled(self):
        double_op.anything()

    def testEnd(self):
        os._exit(3)

    def testSkipped(self):
        self.skipTest("no")


class WithoutModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise ValueError

    def testMore(self):
        pass
"""


@pytest.mark.slow
def test_tests_run_word_for_word(tmp_path: Path) -> None:
    folder = tmp_path / "tflite" / "python"
    folder.mkdir(parents=True)
    (folder / "lite_test.py").write_text(_TESTS)
    assert official_tests._verdicts("ours", str(tmp_path), "lite_test", OLD) == {
        "GoodTest.testClass": "ok",
        "GoodTest.testCompiled": "fail",
        "GoodTest.testEnd": "crash",
        "GoodTest.testSkipped": "skip",
        "WithoutModel.testMore": "fail",
    }
