"""The reference: pages made of docstrings."""

from __future__ import annotations

import contextlib
import inspect
import io
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell

import graphcore as gc
import graphcore.api
import graphcore.testing
import widgets
from graphcore.__main__ import main as command
from graphcore.api.ops import snake_case
from graphcore.notebook_names import RESULTS, SHOWN
from tests.support.site.docstrings import cell, first_sentence, markdown, signature_of
from tests.support.tools.op_table import FAMILIES, family_of, modules

TOPICS: Final[dict[str, str]] = {
    "Show and open": "show load save save_saved_model from_source import_graph_def run Run graph_diff compare_runs RunComparison TensorComparison costs Costs NodeCost Roofline set_evaluation_limits",
    "Ask why": "explain_shape explain_gradient check_gradient explain_placement",
    "Build graphs": "Graph Node Tensor Variable Shape DType get_default_graph reset_default_graph GraphKeys apply_op relu softmax log_softmax bias_add softmax_cross_entropy_with_logits debug_string",
    "Functions, branches and loops": "function Function cond case switch_case while_loop parse_function instantiate_function function_defs_equal symbolic_gradient FunctionDef FunctionDefHelper FunctionLibraryDefinition FunctionLibraryRuntime",
    "Gradients and training": "gradients Optimizer GradientDescentOptimizer MomentumOptimizer AdamOptimizer save_variables restore_variables",
    "Run": "Session DirectSession GraphRunner RunOptions RunMetadata SessionOptions get_default_session gpu_devices",
    "Place": "Device DeviceSet DeviceSpec Placer simulated_devices register_device_type register_kernel partition_graph CostModel predict_step predict_scaling prediction_error propose_placement what_if",
    "Define ops": "OpDef OpDefBuilder NodeDef NodeDefBuilder NodeBuilder GraphDef op_registry register_op register_op_gradient register_op_no_gradient InferenceContext ShapeRefiner GraphError",
    "Passes": "optimize_graph fold_constants eliminate_common_subexpressions lower_functional_ops",
}
OTHERS: Final = frozenset({"__version__", "package_version", "errors", "ops"})
"""Names with pages of their own, or without a docstring."""
MARK: Final = "<!-- reference -->"


def own_names() -> set[str]:
    """The names of `gc` that are neither TensorFlow 1's nor dtypes."""
    names = (SHOWN | {*graphcore.api.__all__}) - RESULTS - OTHERS
    return {name for name in names if not isinstance(getattr(gc, name), gc.DType)}


def write_reference(docs: Path) -> None:
    """Write the pages of the reference, and list them in the page `reference.md` of `docs`."""
    folder = docs / "reference"
    folder.mkdir()
    pages = {
        **{slug(title): topic(title, names.split()) for title, names in TOPICS.items()},
        "checks": module_page("Checks of graphs", "gc.testing", graphcore.testing, ""),
        "errors": module_page("Errors", "gc.errors", gc.errors, ""),
        "widgets": module_page("Views", "widgets", widgets, "Pictures, pages, lenses and overlays of graphs."),
        "magics": magics(),
        "command": command_page(),
        "tensorflow_1": tensorflow_names(),
    }
    ops = {f"ops_{slug(family)}": op_page(family) for family in FAMILIES}
    for name, text in {**pages, **ops}.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    index = docs / "reference.md"
    trees = f"{tree('Names', [*pages])}\n\n## Ops by family\n\n{tree('Ops', [*ops])}"
    index.write_text(index.read_text(encoding="utf-8").replace(MARK, trees), encoding="utf-8")


def slug(title: str) -> str:
    """The name of a page."""
    return "_".join("".join(letter if letter.isalnum() else " " for letter in title.lower()).split())


def tree(caption: str, names: list[str]) -> str:
    """A list of pages."""
    return "\n".join(["```{toctree}", ":maxdepth: 1", f":caption: {caption}", "", *(f"reference/{name}" for name in names), "```"])


def topic(title: str, names: list[str]) -> str:
    """The page of some names of `gc`."""
    return "\n\n".join([f"# {title}", *(entry(f"gc.{name}", getattr(gc, name)) for name in names)]) + "\n"


def entry(name: str, value: Any, level: int = 2) -> str:
    """The section of one name, with the public methods of a class."""
    signature = signature_of(name, value)
    parts = [f"{'#' * level} `{name}`", *([f"```python\n{signature}\n```"] if signature else []), markdown(inspect.getdoc(value) or "")]
    if inspect.isclass(value) and level == 2:
        parts += [entry(f"{value.__name__}.{method}", member, 3) for method, member in methods(value)]
    return "\n\n".join(parts)


def methods(kind: type) -> list[tuple[str, Any]]:
    """The documented public methods that a class of the project defines, in their order."""
    own = [base for base in kind.__mro__ if base.__module__.split(".")[0] in {"graphcore", "widgets", "kernelext"}]
    members = {name: member for base in reversed(own) for name, member in vars(base).items() if not name.startswith("_")}
    return [(name, getattr(kind, name)) for name, member in members.items() if inspect.isfunction(member) and member.__doc__]


def module_page(title: str, name: str, module: ModuleType, words: str) -> str:
    """The page of all names that a module exports."""
    exported = getattr(module, "__all__", None) or [
        key for key, value in vars(module).items() if not key.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    values = [(key, getattr(module, key)) for key in exported]
    entries = [entry(f"{name}.{key}", value) for key, value in values if inspect.isclass(value) or callable(value)]
    return "\n\n".join([f"# {title}", words or markdown(inspect.getdoc(module) or ""), *entries]) + "\n"


def magics() -> str:
    """The page of the magics of the IPython extension."""
    shell: Any = InteractiveShell.instance()
    before = {*shell.magics_manager.magics["line"]}
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_line_magic("load_ext", "kernelext")
    names = sorted({*shell.magics_manager.magics["line"]} - before)
    parts = ["# Magics", "`%load_ext kernelext` adds them to a notebook or a terminal with IPython."]
    for name in names:
        text = inspect.getdoc(shell.find_line_magic(name)) or ""
        parts += [f"## `%{name}`", f"```text\n{text.strip()}\n```"]
    shell.run_line_magic("unload_ext", "kernelext")
    return "\n\n".join(parts) + "\n"


def command_page() -> str:
    """The page of the console command."""
    parts = ["# The command `graphloupe`", "`python -m graphcore` is the same command."]
    for words in ([], ["view"], ["stats"], ["inspect"], ["diff"], ["lab"], ["completion"]):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            command([*words, "--help"])
        parts += [f"## `{' '.join(['graphloupe', *words])}`", f"```text\n{printed.getvalue().strip()}\n```"]
    return "\n\n".join(parts) + "\n"


def tensorflow_names() -> str:
    """The page of TensorFlow 1's names, with a sentence for each."""
    own = own_names()
    rest = {name: getattr(gc, name) for name in dir(gc) if name not in own and not name.startswith("_")}
    spaces = {name: value for name, value in rest.items() if inspect.ismodule(value) and name not in {"errors", "ops", "testing"}}
    functions = {name: value for name, value in rest.items() if callable(value) and not inspect.ismodule(value)}
    parts = [
        "# TensorFlow 1's names",
        "Their signatures, defaults and numbers are TensorFlow 1.15's. `gc.NAME?` shows the whole documentation of one in a notebook.",
        "## Top level",
        table("gc", functions),
    ]
    for name, space in spaces.items():
        members = {key: getattr(space, key) for key in dir(space) if not key.startswith("_")}
        listed = {key: value for key, value in members.items() if callable(value) and not inspect.ismodule(value)}
        if listed:
            parts += [f"## `gc.{name}`", table(f"gc.{name}", listed)]
    return "\n\n".join(parts) + "\n"


def table(space: str, values: dict[str, Any]) -> str:
    """A table of names with their first sentences."""
    rows = [f"| `{space}.{name}` | {cell(first_sentence(inspect.getdoc(value) or ''))} |" for name, value in values.items()]
    return "\n".join(["| name | what it gives |", "|---|---|", *rows])


def op_page(family: str) -> str:
    """The page of a family of ops."""
    names = sorted(name for module, ops in modules().items() if family_of(module) == family for name in ops)
    parts = [f"# Ops: {family}"]
    for name in names:
        registered = gc.op_registry.look_up(name)
        function = getattr(gc.ops, snake_case(name), None)
        text = markdown(inspect.getdoc(function) or registered.op_def.summary)
        signature = signature_of(f"gc.ops.{snake_case(name)}", function) if function else ""
        parts += [f"## {name}", *([f"```python\n{signature}\n```"] if signature else []), text]
    return "\n\n".join(parts) + "\n"
