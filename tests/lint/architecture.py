"""The structure of the code base: import directions, file sizes, and exports of packages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import networkx as nx

from tests.lint.files import PACKAGES, ROOT, place, python_files, source_files

MOST_LINES = 500
MOST_LINES_OF_ONE_THOUGHT = 900
ONE_THOUGHT = {
    "graphcore/graph/model/node.py": "a node has tensors, a tensor has its node and Python's operators, and an edge joins nodes",
}
"""The files that may be longer than others, since cut up they would refer to each other, with that reason."""

UPWARD_ANNOTATIONS = {
    ("graphcore.graph.model.node", "graphcore.graph.graph"): "a user asks the graph of a node for all that a `Graph` does",
}
"""The annotations of a module above, each with its reason."""

# Lowest first; graphcore's packages and modules by their names in it. A module imports from its own layer and lower ones.
LAYERS = (
    (
        "absent_ops",
        "errors",
        "brief",
        "op_names",
        "plumbing",
        "release",
        "remarks",
        "shell_completion",
        "dtypes",
        "dimension",
        "shapes",
        "value_casts",
        "device_spec",
        "source",
        "rendezvous_key",
        "support",
    ),
    ("attrs", "tensor_encoding", "shared_resources"),
    ("definitions",),
    ("checkpoints",),
    ("inference",),
    ("inference.shape_fns", "kernel_context", "registry", "traits"),
    ("text",),  # functions are parsed with look-ups of their ops
    ("functions",),
    ("graph.model",),
    ("graph.control_flow",),
    ("graph.shapes",),
    ("graph.provenance",),
    ("graph.editing",),
    ("graph.building",),
    ("graph.following",),
    ("graph",),  # a graph has a library of functions
    ("graph.importing",),
    ("opset.framework",),  # an op block defines its gradient by `functions`
    ("opset.numerics",),
    ("opset.arrays", "opset.control_flow", "opset.io", "opset.math", "opset.nn", "opset.state"),
    ("opset.images", "opset.sequences", "opset.sparse", "opset.strings", "opset.tables"),
    ("opset",),
    ("passes.infra",),
    ("passes.functions",),
    ("passes.gradients.bodies", "passes.gradients.overrides"),
    ("passes.gradients.functions",),
    ("passes.gradients", "passes.lower", "passes.optimize"),
    ("passes.gradients.explanation",),
    ("passes",),
    ("difference",),
    ("placement",),
    ("runtime.core",),
    ("runtime.plan", "runtime.runners"),
    ("runtime.dataflow",),
    ("runtime.engines",),
    ("runtime.gpu",),
    ("runtime.partitions", "runtime.stepping"),
    ("runtime.functions",),
    ("runtime.backends",),
    ("runtime.session",),
    ("runtime.cluster",),
    ("runtime",),
    ("tf1.calls", "tf1.framework", "tf1.indexed_slices", "tf1.math"),
    ("tf1.arrays",),
    ("tf1.random", "tf1.tensor_array", "tf1.variables"),
    ("frontends",),
    ("costing",),
    ("api",),
    ("tf1.names.internal",),
    ("notebook_names", "tf1.names.table", "tf1.names.tensorflow_names"),
    ("tf1.names",),
    ("tf1",),
    ("", "testing"),
    ("widgets.language", "widgets.scene.types"),
    ("widgets.function_views", "widgets.inspection", "widgets.timelines", "widgets.times", "widgets.steps"),
    ("widgets.overlays", "widgets.recorded_values"),
    ("widgets.messages",),
    ("widgets.requests",),
    ("widgets.scene",),
    ("widgets.render",),
    ("widgets.port",),
    ("widgets.function",),
    ("widgets.live",),
    ("widgets",),
    ("kernelext",),
    ("__main__",),  # the command line starts any package
)
VIEW_LIBRARIES = {"IPython", "ipywidgets", "anywidget", "ipykernel", "traitlets"}


@cache
def layer_of(module: str) -> int:
    """The index of the layer that names `module` or the innermost package around it; -1 when none does.

    A package itself, which exports its parts, is in the highest layer of these.
    """
    name = module.removeprefix("graphcore").removeprefix(".") if module.partition(".")[0] == "graphcore" else module
    parts = [index for index, names in enumerate(LAYERS) if any(known == name or known.startswith(f"{name}.") for known in names)]
    while not parts and name:
        name = name.rpartition(".")[0]
        parts = [index for index, names in enumerate(LAYERS) if name and name in names]
    return max(parts, default=-1)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


class Import(NamedTuple):
    """Line and full module name of an import; `needed` unless it is below `if TYPE_CHECKING`."""

    line: int
    module: str
    needed: bool


def import_statements(tree: ast.AST, *, needed: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """All import statements, with False for those below `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, needed
        elif not isinstance(child, ast.expr):  # no expression contains a statement
            for_types = isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"
            yield from import_statements(child, needed=needed and not for_types)


@cache
def imported_modules(path: Path) -> list[Import]:
    """The imports of a file."""
    return list(_imported_modules(path))


def _imported_modules(path: Path) -> Iterator[Import]:
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node, needed in import_statements(tree):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, needed) for alias in node.names)
            continue
        base = node.module or ""
        if node.level:
            parents = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*parents, base] if base else parents)
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield Import(node.lineno, inner if base.split(".")[0] in PACKAGES and is_module(inner) else base, needed)


def directed_imports(path: Path) -> Iterator[Import]:
    """The imports among our packages that have a direction: those for annotations too."""
    module = module_name(path)
    for line, imported, needed in imported_modules(path):
        if imported.split(".")[0] in PACKAGES and imported != module and (needed or (module, imported) not in UPWARD_ANNOTATIONS):
            yield Import(line, imported, needed)


def imports_point_only_to_lower_layers() -> Iterator[str]:
    """A module imports from its own layer and from lower ones, for annotations too."""
    for path in python_files(*PACKAGES):
        module = module_name(path)
        own = layer_of(module)
        if own < 0:
            yield f"{place(path)}: no layer holds {module}: give it a place in LAYERS of {place(Path(__file__))}"
            continue
        for line, imported, _ in directed_imports(path):
            if layer_of(imported) > own:
                yield f"{place(path, line)}: imports {imported}, of a higher layer"


def no_module_imports_itself_by_a_detour() -> Iterator[str]:
    """No modules need each other, for annotations either."""
    imports: nx.DiGraph[str] = nx.DiGraph()
    for path in python_files(*PACKAGES):
        imports.add_edges_from((module_name(path), imported) for _, imported, _ in directed_imports(path))
    for group in nx.strongly_connected_components(imports):
        if len(group) > 1:
            yield f"modules that need each other: {sorted(group)}"


def the_core_knows_nothing_of_views() -> Iterator[str]:
    """`graphcore` imports no library of notebooks and widgets."""
    for path in python_files("graphcore"):
        for line, imported, _ in imported_modules(path):
            if imported.split(".")[0] in VIEW_LIBRARIES:
                yield f"{place(path, line)}: imports {imported}"


def a_package_init_only_exports_names() -> Iterator[str]:
    """An `__init__` imports names and lists them, and does nothing else."""
    for path in python_files(*PACKAGES):
        if path.name != "__init__.py":
            continue
        statements: list[ast.stmt] = []
        for part in ast.parse(path.read_text(encoding="utf-8")).body:
            about_types = isinstance(part, ast.If) and ast.unparse(part.test) in {"TYPE_CHECKING", "not TYPE_CHECKING"} and not part.orelse
            statements += part.body if isinstance(part, ast.If) and about_types else [part]
        for node in statements:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets if isinstance(node, ast.Assign) else []
            listing = bool(targets) and all(isinstance(name, ast.Name) and name.id in {"__all__", "__version__"} for name in targets)
            if not (docstring or listing or isinstance(node, ast.Import | ast.ImportFrom)):
                yield f"{place(path, node.lineno)}: not an export: {ast.unparse(node)[:80]}"


def no_source_file_is_longer_than_a_person_reads() -> Iterator[str]:
    """A hand-written file has at most MOST_LINES lines; those of ONE_THOUGHT may have more."""
    for path in source_files():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        most = MOST_LINES_OF_ONE_THOUGHT if place(path) in ONE_THOUGHT else MOST_LINES
        if lines > most:
            yield f"{place(path)}: {lines} lines, more than {most}"
        elif lines <= MOST_LINES < most:
            yield f"{place(path)}: {lines} lines need no place in ONE_THOUGHT"


def there_is_no_top_level_code_folder_besides_the_agreed_ones() -> Iterator[str]:
    """Code lies in the packages, in `notebooks` and in `tests`."""
    folders = {path.relative_to(ROOT).parts[0] for path in source_files() if len(path.relative_to(ROOT).parts) > 1}
    for folder in sorted(folders - {*PACKAGES, "notebooks", "tests"}):
        yield f"{folder}: a folder of code besides the agreed ones"


def nothing_is_patched_into_another_module() -> Iterator[str]:
    """A lower module is handed what it needs; no module sets it there."""
    for path in python_files(*PACKAGES):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import) for alias in node.names
        }
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr) and any(target in imported for target in _changed(node)):
                yield f"{place(path, node.lineno)}: changes another module: {ast.unparse(node)[:80]}"


def _changed(node: ast.Assign | ast.AugAssign | ast.Expr) -> list[str]:
    """The names whose attributes or items a statement of a module sets, or whose lists it appends to."""
    if isinstance(node, ast.Expr):
        call = node.value
        method = call.func if isinstance(call, ast.Call) else None
        adds = isinstance(method, ast.Attribute) and method.attr in {"append", "extend", "insert", "add", "update", "setdefault"}
        targets: list[ast.expr] = [method.value] if adds and isinstance(method, ast.Attribute) else []
        return [target.id for target in targets if isinstance(target, ast.Name)]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    bases = [target.value for target in targets if isinstance(target, ast.Attribute | ast.Subscript)]
    return [part.id for base in bases for part in ast.walk(base) if isinstance(part, ast.Name)]


RULES = (
    imports_point_only_to_lower_layers,
    no_module_imports_itself_by_a_detour,
    the_core_knows_nothing_of_views,
    a_package_init_only_exports_names,
    no_source_file_is_longer_than_a_person_reads,
    there_is_no_top_level_code_folder_besides_the_agreed_ones,
    nothing_is_patched_into_another_module,
)
