"""The passes for control flow, lists, tensor arrays and stacks, together: only models that have any load them."""

from __future__ import annotations

from tfconvert.converter.litert.passes.fuse_recurrent_loops import FuseRecurrentLoops
from tfconvert.converter.litert.passes.prepare_control_flow import PrepareControlFlow
from tfconvert.converter.litert.passes.separate_results import SeparateResults
from tfconvert.converter.passes.functionalize_conditionals import FunctionalizeConditionals
from tfconvert.converter.passes.functionalize_loops import FunctionalizeLoops
from tfconvert.converter.passes.lower_tensor_lists import LowerTensorLists
from tfconvert.converter.passes.mark_stateless import MarkStateless
from tfconvert.converter.passes.merge_loop_variables import MergeLoopVariables
from tfconvert.converter.passes.regions_to_functional import RegionsToFunctional
from tfconvert.converter.passes.share_shapes import ShareShapes
from tfconvert.converter.passes.simplify_control_flow import SimplifyControlFlow
from tfconvert.converter.passes.sink_handles import SinkHandles
from tfconvert.converter.passes.stacks_to_lists import StacksToLists
from tfconvert.converter.passes.tensor_arrays_to_lists import TensorArraysToLists
from tfconvert.converter.passes.unique_callees import UniqueCallees

__all__ = [
    "FunctionalizeConditionals",
    "FunctionalizeLoops",
    "FuseRecurrentLoops",
    "LowerTensorLists",
    "MarkStateless",
    "MergeLoopVariables",
    "PrepareControlFlow",
    "RegionsToFunctional",
    "SeparateResults",
    "ShareShapes",
    "SimplifyControlFlow",
    "SinkHandles",
    "StacksToLists",
    "TensorArraysToLists",
    "UniqueCallees",
]
