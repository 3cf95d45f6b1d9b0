"""The structure of the code base: import directions, file sizes, and exports of packages."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import pytest

pytestmark = pytest.mark.sweep

ROOT = Path(__file__).parents[1]
PACKAGES = ("graphcore", "widgets", "kernelext")
MOST_LINES = 500

# Lowest first; graphcore's packages and modules by their names in it. A module imports from its own layer and lower ones.
LAYERS = (
    (
        "absent_ops",
        "errors",
        "brief",
        "plumbing",
        "release",
        "remarks",
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
    ("runtime.plan",),
    ("runtime.dataflow",),
    ("runtime.gpu",),
    ("runtime.partitions", "runtime.stepping"),
    ("runtime.session",),
    ("runtime.cluster",),
    ("runtime",),
    ("api",),
    ("tf1.internal",),
    ("notebook_names", "tf1.table", "tf1.tensorflow_names"),
    ("tf1.absent",),
    ("tf1",),
    ("", "testing"),
    ("widgets.scene.types",),
    ("widgets.function_views", "widgets.inspection", "widgets.timelines", "widgets.times", "widgets.steps"),
    ("widgets.recorded_values",),
    ("widgets.messages",),
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


def package_of(module: str) -> str:
    """The top-level package of a module: `graphcore.graph` for `graphcore.graph.model.node`."""
    return ".".join(module.split(".")[: 2 if module.startswith("graphcore.") else 1])


def python_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")) if "node_modules" not in path.parts]


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


@pytest.mark.parametrize("path", python_files(*PACKAGES), ids=module_name)
def test_imports_point_only_to_lower_layers(path: Path) -> None:
    module = module_name(path)
    own = layer_of(module)
    assert own >= 0, f"{module} has no place in LAYERS of {Path(__file__).name}: give it one"
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {imported}"
        for line, imported, needed in imported_modules(path)
        if imported.split(".")[0] in PACKAGES
        and imported != module
        and layer_of(imported) > own
        # Within a package a lower module may name a higher one in an annotation: a node has a graph.
        and (needed or package_of(imported) != package_of(module))
    ]
    assert not wrong, "imports against the direction of the layers:\n" + "\n".join(wrong)


def test_no_module_imports_itself_by_a_detour() -> None:
    imports: nx.DiGraph[str] = nx.DiGraph()
    for path in python_files(*PACKAGES):
        targets = {name for _, name, needed in imported_modules(path) if needed and name.split(".")[0] in PACKAGES}
        imports.add_edges_from((module_name(path), target) for target in targets)
    cycles = [sorted(group) for group in nx.strongly_connected_components(imports) if len(group) > 1]
    assert not cycles, f"modules that need each other: {cycles}"


@pytest.mark.parametrize("path", python_files("graphcore"), ids=module_name)
def test_the_core_knows_nothing_of_views(path: Path) -> None:
    wrong = [f"line {line}: {imported}" for line, imported, _ in imported_modules(path) if imported.split(".")[0] in VIEW_LIBRARIES]
    assert not wrong


@pytest.mark.parametrize("path", [path for path in python_files(*PACKAGES) if path.name == "__init__.py"], ids=module_name)
def test_a_package_init_only_exports_names(path: Path) -> None:
    allowed = (ast.Import, ast.ImportFrom)
    wrong = []
    statements: list[ast.stmt] = []
    for part in ast.parse(path.read_text(encoding="utf-8")).body:
        about_types = isinstance(part, ast.If) and ast.unparse(part.test) in {"TYPE_CHECKING", "not TYPE_CHECKING"} and not part.orelse
        statements += part.body if isinstance(part, ast.If) and about_types else [part]
    for node in statements:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets if isinstance(node, ast.Assign) else []
        listing = bool(targets) and all(isinstance(name, ast.Name) and name.id in {"__all__", "__version__"} for name in targets)
        if not (docstring or listing or isinstance(node, allowed)):
            wrong.append(f"line {node.lineno}: {ast.unparse(node)[:80]}")
    assert not wrong, "an __init__ exports names and does nothing else:\n" + "\n".join(wrong)


def source_files() -> list[Path]:
    """Hand-written source files: files that git tracks or would track, without generated ones."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kinds = {".py", ".ts", ".mjs", ".js", ".css", ".sh"}
    paths = [ROOT / line for line in listing.stdout.splitlines()]
    return [path for path in paths if path.suffix in kinds and path.exists() and "static" not in path.parts and not is_generated(path)]


def is_generated(path: Path) -> bool:
    """True iff the first lines say that the file is generated."""
    head = path.read_text(encoding="utf-8")[:400].lower()
    return path.stem.endswith("_pb2") or "do not edit" in head


def test_no_source_file_is_longer_than_a_person_reads() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    assert len(lengths) > len(PACKAGES)
    too_long = [f"{path.relative_to(ROOT)}: {lines} lines" for path, lines in lengths.items() if lines > MOST_LINES]
    assert not too_long, f"more than {MOST_LINES} lines:\n" + "\n".join(too_long)


def test_there_is_no_top_level_code_folder_besides_the_agreed_ones() -> None:
    folders = {path.relative_to(ROOT).parts[0] for path in source_files() if len(path.relative_to(ROOT).parts) > 1}
    assert folders <= {*PACKAGES, "notebooks", "tests"}


def test_layers_are_told_by_the_package_a_module_is_in() -> None:
    names = [name for layer in LAYERS for name in layer]
    assert len(names) == len(set(names))
    order = [
        "graphcore.errors",
        "graphcore.text.printer",
        "graphcore.graph.model.node",
        "graphcore.graph.graph",
        "graphcore.graph",
        "graphcore.opset.math.binary",
        "graphcore",
        "widgets.scene",
        "kernelext",
    ]
    layers = [layer_of(module) for module in order]
    assert layers == sorted(set(layers))
    assert layer_of("graphcore.nowhere") == -1


@pytest.mark.parametrize("path", python_files(*PACKAGES), ids=module_name)
def test_nothing_is_patched_into_another_module(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom | ast.Import) for alias in node.names}
    patched = [
        f"line {node.lineno}: {ast.unparse(node)[:80]}"
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr)
        for target in _changed(node)
        if target in imported
    ]
    assert not patched, "what a lower module needs is handed to it:\n" + "\n".join(patched)


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
