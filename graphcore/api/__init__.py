"""Functions that are Graphloupe's own: gradients, control flow, explanations, checks, files."""

from graphcore.api import ops
from graphcore.api.apply_op import apply_op
from graphcore.api.branches import case, cond, switch_case
from graphcore.api.compare_runs import RunComparison, compare_runs
from graphcore.api.costs import costs
from graphcore.api.explain_shape import explain_shape
from graphcore.api.function import Function, Instantiation, function
from graphcore.api.gradients.check_gradient import check_gradient
from graphcore.api.gradients.check_report import GradientCheck, InputCheck
from graphcore.api.gradients.explain_gradient import explain_gradient
from graphcore.api.gradients.explanation import BackwardNode, GradientCut, GradientExplanation, GradientPart, GradientStep, GradientSum
from graphcore.api.gradients.gradients import gradients
from graphcore.api.graph_diff import graph_diff
from graphcore.api.interchange import from_source, import_graph_def, load, register_op_list, save, save_saved_model
from graphcore.api.loops import while_loop
from graphcore.api.run import Run, run
from graphcore.api.short_forms import bias_add, log_softmax, softmax, softmax_cross_entropy_with_logits
from graphcore.api.show import show
from graphcore.api.tensor_comparison import TensorComparison
from graphcore.costing import Costs, NodeCost, Roofline
from graphcore.support.budget import set_evaluation_limits

__all__ = [
    "BackwardNode",
    "Costs",
    "Function",
    "GradientCheck",
    "GradientCut",
    "GradientExplanation",
    "GradientPart",
    "GradientStep",
    "GradientSum",
    "InputCheck",
    "Instantiation",
    "NodeCost",
    "Roofline",
    "Run",
    "RunComparison",
    "TensorComparison",
    "apply_op",
    "bias_add",
    "case",
    "check_gradient",
    "compare_runs",
    "cond",
    "costs",
    "explain_gradient",
    "explain_shape",
    "from_source",
    "function",
    "gradients",
    "graph_diff",
    "import_graph_def",
    "load",
    "log_softmax",
    "ops",
    "register_op_list",
    "run",
    "save",
    "save_saved_model",
    "set_evaluation_limits",
    "show",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "switch_case",
    "while_loop",
]
