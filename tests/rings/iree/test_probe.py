"""IREE treats the forms that are rewritten for it as the table says, so that changes in a newer IREE are noticed."""

from __future__ import annotations

from benchmarks import iree_probe


def test_iree_treats_each_form_as_the_table_says() -> None:
    known, found = iree_probe.table(), iree_probe.probe()
    needless = sorted(each for each, outcome in found.items() if iree_probe.TAKEN == outcome != known.get(each))
    needed = sorted(each for each, outcome in found.items() if iree_probe.TAKEN == known.get(each) != outcome)
    assert not needless, (
        f"IREE now takes {needless}: are their rewrites needed? (python -m benchmarks.iree_probe --write)"
    )
    assert not needed, f"IREE no longer takes {needed} (python -m benchmarks.iree_probe --write)"
    assert found == known, "rewrite the table: python -m benchmarks.iree_probe --write"
