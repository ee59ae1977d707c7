"""The probe of IREE has every op that is rewritten for it or refused, and programs that we can read."""

from __future__ import annotations

import pytest

from benchmarks import iree_probe
from tfconvert.converter.targets.iree.rewrites.rules import REFUSED, RULES
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser


def test_every_rewrite_and_refusal_is_probed() -> None:
    assert {form.op for form in iree_probe.forms()} == RULES.keys() | REFUSED.keys()


def test_the_table_has_every_form() -> None:
    assert list(iree_probe.table()) == [(form.op, form.form) for form in iree_probe.forms()]


@pytest.mark.parametrize("form", tuple(iree_probe.forms()), ids=lambda form: f"{form.op}, {form.form}")
def test_forms_are_programs(form: iree_probe.Form) -> None:
    module = IRParser(form.text).parse_module()
    verify(module)
    assert any(op.name == form.op for op in module.walk())
