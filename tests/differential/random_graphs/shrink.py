"""Makes a program that differs smaller, until every op in it is needed for the difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.differential.random_graphs.program import CONSTANT, STEP, Program


def shrink(program: Program, output: int, differs: Callable[[Program], bool]) -> Program:
    """Returns a smaller program that still differs.

    Args:
        program: The program.
        output: The place of the output that differs; -1 for all.
        differs: Returns whether a program still shows what is sought.
    """
    best = _if(program.cut((), [output]), program, differs) if output >= 0 else program
    for place in program.outputs if output < 0 else ():
        if program.origins[place] == STEP:
            best = _if(program.cut((), [place]), best, differs)
    for place in [place for step in best.steps for place in step.results if place not in best.outputs]:
        if best.origins[place] == STEP:
            best = _if(best.cut([place], best.outputs), best, differs)
    best = _if(replace(best, open={}), best, differs)
    for place in best.inputs():
        origins = tuple(CONSTANT if at == place else origin for at, origin in enumerate(best.origins))
        if best.values[place].dtype.kind in "iu" and best.values[place].ndim <= 1 and len(best.inputs()) > 1:
            best = _if(replace(best, origins=origins), best, differs)
    return best


def _if(smaller: Program, before: Program, differs: Callable[[Program], bool]) -> Program:
    """Returns the smaller program if it still differs, the one before if not."""
    return smaller if smaller.steps and differs(smaller) else before


def ops_of(program: Program) -> str:
    """Returns a program's ops with the types they are called on."""
    told = []
    for step in program.steps:
        operands = step.operands()
        told.append(f"{step.op}<{program.values[operands[0]].dtype}>" if operands else step.op)
    return " ".join(told)
