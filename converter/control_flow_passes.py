"""The passes for control flow, lists, tensor arrays and stacks, together: only models that have any load them."""

from __future__ import annotations

from converter.passes.functionalize_conditionals import FunctionalizeConditionals
from converter.passes.functionalize_loops import FunctionalizeLoops
from converter.passes.fuse_recurrent_loops import FuseRecurrentLoops
from converter.passes.lower_tensor_lists import LowerTensorLists
from converter.passes.mark_stateless import MarkStateless
from converter.passes.merge_loop_variables import MergeLoopVariables
from converter.passes.prepare_control_flow import PrepareControlFlow
from converter.passes.regions_to_functional import RegionsToFunctional
from converter.passes.separate_results import SeparateResults
from converter.passes.share_shapes import ShareShapes
from converter.passes.simplify_control_flow import SimplifyControlFlow
from converter.passes.sink_handles import SinkHandles
from converter.passes.stacks_to_lists import StacksToLists
from converter.passes.tensor_arrays_to_lists import TensorArraysToLists
from converter.passes.unique_callees import UniqueCallees

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
