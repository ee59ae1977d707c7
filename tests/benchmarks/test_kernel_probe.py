"""The table of LiteRT's kernels: the installed LiteRT does what it says, and it says what was measured."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from benchmarks.kernel_probe import child, draw, judge, plain, rank_rows, table, tensors
from benchmarks.kernel_probe.case import Case
from benchmarks.kernel_probe.child import Answer, Job
from benchmarks.kernel_probe.tensors import like, scaled, weights, within
from tfconvert.schema.tflite import kernels
from tfconvert.schema.tflite.kernels import CRASHES, OK, REFUSED, WRONG

SAMPLE = 64

WORDS_NONE, EMPTY, COMPUTED = frozenset[str](), frozenset({"empty"}), frozenset({"computed"})
PAIR_OK, PAIR_BAD = (OK, OK), (REFUSED, REFUSED)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Returns all calls that the table is made of."""
    return list(table.all_cases())


def _sample(cases: list[Case]) -> list[Case]:
    """Returns some calls, at most two of an operator; the same ones every time."""
    by_operator: dict[str, list[Case]] = defaultdict(list)
    rng = np.random.default_rng(7)
    for index in rng.permutation(len(cases)):
        case = cases[index]
        if len(by_operator[case.operator]) < 2:
            by_operator[case.operator].append(case)
    chosen = [case for each in by_operator.values() for case in each]
    return [chosen[index] for index in rng.permutation(len(chosen))[:SAMPLE]]


def test_litert_matches_the_table(cases: list[Case]) -> None:
    """Where this fails, LiteRT has changed: `python -m benchmarks.kernel_probe` rewrites the table."""
    found = judge.probe(_sample(cases))
    assert len(found) == SAMPLE
    wrong = []
    for each in found:
        known = kernels.outcome(each.case.operator, each.case.call)
        # Of several calls that the conditions don't distinguish, the table has the worst.
        if known is None or _is_worse((each.builtin, each.xnnpack), (known.builtin, known.xnnpack)):
            wrong.append(f"{each.case.key}: {each.builtin} {each.xnnpack} instead of {known}, {each.problems}")
        elif known.is_ok is not (each.builtin == each.xnnpack == OK):
            wrong.append(f"{each.case.key}: is right now, instead of {known}")
    assert not wrong, "\n".join(wrong)


def _is_worse(found: tuple[str, str], known: tuple[str, str]) -> bool:
    rank = kernels.OUTCOMES.index
    return any(rank(one) > rank(other) for one, other in zip(found, known, strict=True))


def test_litert_matches_the_table_on_plain_numbers() -> None:
    """A call of each operator with floats or integers, of a rank that nobody would choose."""
    rng, sample = np.random.default_rng(11), list[Case]()
    for family in plain.families():
        kind = "f32" if "f32" in family.types else family.types[int(rng.integers(len(family.types)))]
        tried = [case for case in plain.cases(family, kind, max(family.ranks)) if not case.is_special]
        sample += tried[:1]
    assert len({case.operator for case in sample}) > 110
    wrong = []
    for each in plain.probe(sample):
        known = kernels.outcome(each.case.operator, each.case.call)
        if known is None or _is_worse((each.builtin, each.xnnpack), (known.builtin, known.xnnpack)):
            wrong.append(f"{each.case.key}: {each.builtin} {each.xnnpack} instead of {known}, {each.problems}")
    assert not wrong, "\n".join(wrong)


def test_plain_numbers_have_negative_ones_and_extremes() -> None:
    drawn = draw.Draw("ADD", "i16", 3).x().value
    assert {drawn.min(), drawn.max()} == {-32768, 32767}
    assert draw.Draw("ADD", "f32", 3).x().value.min() < 0
    np.testing.assert_array_equal(drawn, draw.Draw("ADD", "i16", 3).x().value)
    assert draw.kind_of(drawn) == "i16"


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({(WORDS_NONE, 2): PAIR_OK, (WORDS_NONE, 5): PAIR_OK}, ["-"]),
        ({(WORDS_NONE, 2): PAIR_OK, (WORDS_NONE, 5): PAIR_BAD}, ["rank0-4", "rank5-"]),
        ({(WORDS_NONE, 2): PAIR_OK, (EMPTY, 2): PAIR_BAD}, ["-", "empty"]),
        ({(WORDS_NONE, 7): PAIR_BAD, (COMPUTED, 7): PAIR_OK, (COMPUTED, 2): PAIR_OK}, ["-", "computed"]),
    ],
)
def test_rows_of_ranks(seen: rank_rows.Seen, expected: list[str]) -> None:
    rows = rank_rows.rows_of(seen)
    assert sorted(map(rank_rows.words_of, rows)) == expected
    for (words, rank), pair in seen.items():
        found = kernels.decide(rows, words, rank)
        assert found is not None
        assert (found.builtin, found.xnnpack) == pair


def test_rows_of_other_operators_stay() -> None:
    text = kernels.TABLE.read_text("utf-8")
    version = text.split()[3]
    assert table.write(table.rows_in(kernels.KernelTable(text), ()), version) == text
    assert not any(operator == "ABS" for operator, _ in table.rows_in(kernels.KernelTable(text), ("ABS",)))


def test_every_call_is_in_the_table(cases: list[Case]) -> None:
    assert len(cases) > 2000
    missing = [case.key for case in cases if kernels.outcome(case.operator, case.call) is None]
    assert not missing


def test_operators_of_quantized_models_are_in_the_table(cases: list[Case]) -> None:
    assert len({case.operator for case in cases}) > 80


X = np.linspace(-1, 1, 8).reshape(1, 8)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (Case("ABS", [within("i8", X, -1, 1)], [within("i8", like((1, 8)), 0, 1)]), OK),
        (
            Case(
                "RESHAPE",
                [within("i8", X, -1, 1), tensors.plain([8, 1])],
                [within("i8", like((8, 1)), -3, 3)],
                {"new_shape": [8, 1]},
            ),
            WRONG,
        ),
        (Case("SIN", [within("i8", X, -1, 1)], [within("i8", like((1, 8)), -1, 1)]), REFUSED),
    ],
)
def test_outcomes(case: Case, expected: str) -> None:
    (found,) = judge.probe([case])
    assert found.builtin == expected


def test_a_process_that_ends_costs_one_job_only() -> None:
    """A depthwise convolution without a bias ends LiteRT's process."""
    x, w = tensors.Tensor("f32", np.ones((1, 2, 2, 4), np.float32)), weights("f32", np.ones((1, 1, 1, 4)))
    options = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "depth_multiplier": 1}
    bad = Case("DEPTHWISE_CONV_2D", [x, w], [x], options)
    good = Case("NEG", [x], [x])
    answers = child.run([Job(good.file, good.inputs), Job(bad.file, bad.inputs), Job(good.file, good.inputs)])
    assert [answer.problem for answer in answers] == ["", child.CRASH, ""]
    np.testing.assert_array_equal(answers[2].results[0], -x.value)


ONE = scaled("i8", like((4,)), 0.5)


@pytest.mark.parametrize(
    ("result", "found", "wanted", "expected"),
    [
        (ONE, np.array([0, 2, -4, 9], np.int8), np.array([0, 1, -2, 4.5]), 0.0),
        (ONE, np.array([0, 2, -4, 8], np.int8), np.array([0, 1, -2, 6]), 1.0),
        (ONE, np.array([0, 0, 0, 127], np.int8), np.array([0, 0, 0, 1e9]), 0.0),
        (tensors.Tensor("f32", like((2,))), np.array([1, np.nan]), np.array([1, 1]), np.inf),
        (tensors.Tensor("f32", like((2,))), np.array([1, 1.06]), np.array([1, 1]), 1.0),
        (tensors.Tensor("bool", like((2,))), np.array([True, False]), np.array([True, True]), 25.0),
    ],
)
def test_errors(result: tensors.Tensor, found: tensors.Array, wanted: tensors.Array, expected: float) -> None:
    case = Case("ABS", [], [result])
    assert judge.error_of(case, Answer([found]), Answer([wanted])) == pytest.approx(expected)


WORDS = {"a": frozenset("a"), "b": frozenset("b"), "same": frozenset({"same"}), "centred": frozenset({"centred"})}
RIGHT, BAD = (OK, OK), (WRONG, CRASHES)


def test_conditions_that_do_not_matter_are_left_out() -> None:
    seen = {WORDS["a"]: RIGHT, WORDS["b"]: RIGHT, frozenset[str](): RIGHT}
    assert table.rows_of(seen) == {frozenset(): RIGHT}
    assert table.rows_of({**seen, WORDS["a"] | WORDS["b"]: RIGHT, WORDS["b"]: BAD}) == {
        frozenset(): RIGHT,
        WORDS["b"]: BAD,
        WORDS["a"] | WORDS["b"]: RIGHT,
    }


def test_results_under_restrictions_are_not_generalized() -> None:
    both = WORDS["same"] | WORDS["centred"]
    assert table.rows_of({both: RIGHT, WORDS["same"]: BAD, frozenset[str](): BAD}) == {both: RIGHT, frozenset(): BAD}


def test_rows_decide_every_call_they_were_made_from() -> None:
    seen = {
        WORDS["centred"]: RIGHT,
        WORDS["centred"] | WORDS["a"]: BAD,
        WORDS["centred"] | WORDS["same"]: RIGHT,
        WORDS["centred"] | WORDS["same"] | WORDS["a"]: RIGHT,
    }
    rows = [kernels.Outcome(*pair, words) for words, pair in table.rows_of(seen).items()]
    for holding, pair in seen.items():
        found = kernels.decide(rows, holding)
        assert found is not None
        assert (found.builtin, found.xnnpack) == pair


def test_of_several_outcomes_the_table_has_the_worst() -> None:
    x, y = within("i8", X, -1, 1), within("i8", like((1, 8)), -1, 1)
    case = Case("ABS", [x], [y])
    good = Answer([abs(x.real).astype(np.float32)])
    founds = [
        judge.Found(case, good, [Answer([within("i8", abs(x.real), -1, 1).stored]), Answer(problem="refused")]),
        judge.Found(case, good, [Answer([np.zeros((1, 8), np.int8)]), Answer(problem=child.CRASH)]),
    ]
    ((key, seen),) = table.gather(founds).items()
    assert key == ("ABS", "i8>i8")
    assert list(seen.values()) == [(WRONG, CRASHES)]
    text = table.write(table.rows(founds, []), "9.9")
    assert text.startswith("# What LiteRT 9.9 ")
    assert text.splitlines()[-1] == "ABS\t-\twrong\tcrashes\ti8>i8"
