"""The frames of a graph: which loop each op belongs to.

A frame is opened by its `Enter`s and left by its `Exit`s; everything between belongs to it, and inner frames to inner
loops. All of an op's inputs come from one frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tfconvert.converter.functionalize.slices import inputs_of, problem
from tfconvert.schema.dialects.tf_executor import (
    EnterOp,
    ExitOp,
    FetchOp,
    LoopCondOp,
    MergeOp,
    NextIterationSinkOp,
    NextIterationSourceOp,
)
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.operation import Operation


@dataclass(eq=False, slots=True)
class Frame:
    """A loop.

    Attributes:
        name: The frame's name, from its Enters.
        parent: The frame around it; `None` if it is not in another loop.
        depth: How many frames are around it.
        ops: What belongs to it, Enters and Exits included, in the graph's order.
    """

    name: str
    parent: Frame | None
    depth: int
    ops: dict[Operation, None] = field(default_factory=dict)


@dataclass(slots=True)
class Frames:
    """All loops of a graph.

    Attributes:
        of: The frame of each op; of an Enter the one that it opens, of an Exit the one that it leaves. `None` for ops
            in no loop.
        innermost_first: Every frame, each before the one around it.
    """

    of: dict[Operation, Frame | None] = field(default_factory=dict)
    innermost_first: list[Frame] = field(default_factory=list)

    def put(self, op: Operation, frame: Frame | None) -> None:
        """Says that an op belongs to a frame."""
        self.of[op] = frame
        if frame is not None:
            frame.ops[op] = None


def find_frames(block: Block) -> Frames:
    """Returns the frames of a graph's block.

    Raises:
        ConversionError: An op has inputs from different frames or is a loop's without an Enter (`mismatched-frames`),
            or a value is fetched inside of a loop (`fetch-in-loop`).
    """
    frames = Frames()
    made: dict[tuple[Frame | None, str], Frame] = {}
    for op in block.ops:
        if isinstance(op, NextIterationSourceOp):
            continue  # its users determine it, and come later
        if isinstance(op, FetchOp):
            _check_fetch(frames, op)
            continue
        around = _common_frame(frames, op)
        if isinstance(op, EnterOp):
            key = (around, op.frame_name)
            if key not in made:
                made[key] = Frame(op.frame_name, around, 0 if around is None else around.depth + 1)
            around = made[key]
        frames.put(op, around)
        if isinstance(op, MergeOp):
            for value in op.data_operands:
                if isinstance(value.owner, NextIterationSourceOp):
                    _loop_back(frames, op, value.owner, around)
        elif isinstance(op, ExitOp | LoopCondOp) and around is None:
            raise problem(
                "mismatched-frames", "it stands outside of any loop", [op], "a loop's values come in through Enter"
            )
    _check_sinks(frames, block.ops)
    frames.innermost_first = sorted(made.values(), key=lambda frame: -frame.depth)
    return frames


def _common_frame(frames: Frames, op: Operation) -> Frame | None:
    """Returns the frame that an op's inputs are in."""
    found: dict[Frame | None, Operation] = {}
    for value in inputs_of(op):
        owner = value.owner if isinstance(value.owner, Operation) else None
        if not isinstance(owner, NextIterationSourceOp):
            frame = None if owner is None else frames.of.get(owner)
            found.setdefault(frame.parent if frame is not None and isinstance(owner, ExitOp) else frame, owner or op)
    if len(found) > 1:
        names = " and ".join(sorted("none" if frame is None else repr(frame.name) for frame in found))
        raise problem(
            "mismatched-frames",
            f"the node has inputs from different loops, {names}",
            [op, *found.values()],
            "a value comes into a loop through Enter and out of it through Exit",
        )
    return next(iter(found), None)


def _check_fetch(frames: Frames, fetch: FetchOp) -> None:
    for value in fetch.data_operands:
        frame = frames.of.get(value.owner) if isinstance(value.owner, Operation) else None
        inside = frame.parent if frame is not None and isinstance(value.owner, ExitOp) else frame
        if inside is not None:
            assert isinstance(value.owner, Operation)
            raise problem(
                "fetch-in-loop",
                f"the tensor is inside of the loop {inside.name!r} and has many values",
                [value.owner],
                "choose a tensor behind the loop's Exit",
            )


def _loop_back(frames: Frames, merge: MergeOp, source: Operation, frame: Frame | None) -> None:
    if frame is None:
        raise problem(
            "mismatched-frames",
            "NextIteration stands outside of any loop",
            [merge, source],
            "a loop's values come in through Enter",
        )
    frames.put(source, frame)


def _check_sinks(frames: Frames, ops: Iterable[Operation]) -> None:
    for op in ops:
        if isinstance(op, NextIterationSinkOp):
            source = op.token.owner
            assert isinstance(source, Operation)
            if source not in frames.of:
                raise problem(
                    "mismatched-frames",
                    "NextIteration forwards its value to no Merge",
                    [op],
                    "a loop variable is a Merge of an Enter and a NextIteration",
                )
            if frames.of[source] is not frames.of[op]:
                raise problem(
                    "mismatched-frames",
                    "NextIteration leads into another loop",
                    [op],
                    "a loop's values leave it through Exit",
                )
