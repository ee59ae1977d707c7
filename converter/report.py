"""What a conversion did, for people and for machines."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from schema.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the pipeline: its name and how long it took, in seconds."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class OutputError:
    """How far LiteRT's result is from the reference.

    Attributes:
        signature: The signature, or `main`.
        output: The output's name.
        max_absolute: Largest absolute difference.
        max_relative: The same, relative to the reference's largest magnitude.
    """

    signature: str
    output: str
    max_absolute: float
    max_relative: float


@dataclass(slots=True)
class Report:
    """The story of a conversion.

    Attributes:
        source: What was converted.
        stages: The steps in order.
        operations_before: TensorFlow ops after import, by name.
        operators: LiteRT operators in the result, by name.
        bytes_by_operator: Constant bytes in the result by the operator that first uses them.
        rewrites: What each pass that reports it did how often: patterns applied, variables frozen, ops folded.
        signatures: Exported signature keys.
        size: Bytes of the result.
        verification: Differences an output, empty unless verified.
        notes: Warnings and decisions.
    """

    source: str
    stages: list[Stage] = field(default_factory=list)
    operations_before: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    bytes_by_operator: Counter[str] = field(default_factory=Counter)
    rewrites: dict[str, Counter[str]] = field(default_factory=dict)
    signatures: list[str] = field(default_factory=list)
    size: int = 0
    verification: list[OutputError] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)

    @property
    def frozen_variables(self) -> int:
        """Number of variables that became constants."""
        return self.rewrites.get("freeze-variables", Counter())["frozen"]

    @property
    def seconds(self) -> float:
        """Time of all stages."""
        return sum(stage.seconds for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain data, in a stable order."""
        return {
            "source": self.source,
            "size": self.size,
            "seconds": round(self.seconds, 6),
            "signatures": self.signatures,
            "stages": [{"name": stage.name, "seconds": round(stage.seconds, 6)} for stage in self.stages],
            "operations_before": ranked(self.operations_before),
            "operators": ranked(self.operators),
            "bytes_by_operator": ranked(self.bytes_by_operator),
            "rewrites": {name: ranked(counter) for name, counter in self.rewrites.items()},
            "frozen_variables": self.frozen_variables,
            "verification": [asdict(each) for each in self.verification],
            "notes": [note.to_dict() for note in self.notes],
        }


def ranked(counter: Counter[str]) -> dict[str, int]:
    """Returns a counter's entries, largest first, equal ones by name."""
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))
