"""Generated code: no name or value from outside is ever part of its text."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import graphcore as gc
from graphcore.definitions import ArgDef, AttrDef, FunctionDef, FunctionDefLibrary, OpDef
from graphcore.errors import InternalError, InvalidArgumentError
from graphcore.functions import FunctionLibraryDefinition
from graphcore.registry import OpRegistration, OpRegistry
from graphcore.support.generated_code import compile_generated, function_with_parameters

WORDS = frozenset({"run", "kernel"})


def test_code_of_a_generators_own_words_and_counters_is_compiled() -> None:
    scope: dict[str, Any] = {"k0": sum}
    compile_generated("def run(v1, v2_0):\n    return k0([v1, v2_0])\n", "<text>", scope, WORDS)
    assert scope["run"](1, 2) == 3


@pytest.mark.parametrize(
    "text",
    [
        "def run(): return 'text'",
        'def run(): return """text"""',
        "def run(): return v1  # a comment",
        "def run(): return __import__(v1)",
        "def run(): return open(v1)",
        "def run(weights): return v1",
        "import os",
        "def run(): return lambda: v1",
        "def run(): return (yield v1)",
        "def run(): return eval(v1)",
        "def run(): return v1\\\n",
        "def run(): return f1()@v1",
        "def rün(): return v1",
    ],
)
def test_code_with_other_names_or_literals_is_refused(text: str) -> None:
    with pytest.raises(InternalError, match="Generated code contains"):
        compile_generated(text, "<text>", {}, WORDS)


def test_a_functions_parameters_are_named_without_a_text_and_must_be_identifiers() -> None:
    def call(p0: Any, p1: Any) -> Any:
        return p0, p1

    assert isinstance(call, FunctionType)
    made: Any = function_with_parameters(call, "mat_mul", ["a", "b"], [7], "file.py")
    assert made(a=1) == (1, 7)
    assert made(2, b=3) == (2, 3)
    assert str(inspect.signature(made)) == "(a, b=7)"
    with pytest.raises(TypeError, match=r"mat_mul\(\) got an unexpected keyword argument 'p0'"):
        made(p0=1)
    for name in ("a b", "a):\n    pass\n#", "class", ""):
        with pytest.raises(InternalError, match="is no name for"):
            function_with_parameters(call, "mat_mul", ["a", name], [], "file.py")


ATTACK = "x=__import__('pathlib').Path('executed').touch(), y='''):\n    pass\n#"
NAMES = [ATTACK, "a b", "x=1", "x, *rest", "a\n", "9a", "", "é", "x)", "import os", "a.b", "a-b"]


@pytest.mark.parametrize("name", NAMES)
def test_an_op_whose_argument_or_attr_has_no_valid_name_is_refused_wherever_it_enters(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arg = ArgDef(name=name, type=gc.float32)
    for op_def in (
        OpDef(name="Evil", input_arg=(arg,)),
        OpDef(name="Evil", output_arg=(arg,)),
        OpDef(name="Evil", attr=(AttrDef(name=name, type="int"),)),
        OpDef(name="Evil", input_arg=(ArgDef(name="x", type_attr=name),), attr=(AttrDef(name=name, type="type"),)),
    ):
        registry = OpRegistry()
        with pytest.raises(InvalidArgumentError, match="Invalid name"):
            registry.register(op_def)
        with pytest.warns(UserWarning, match="The op 'Evil' of the list is left out. Invalid name"):
            assert gc.register_op_list([op_def, OpDef(name="Kept")], registry) == ["Kept"]
        assert registry.names() == ["Kept"]
        registry.register(partial(OpRegistration, op_def))
        with pytest.raises(InvalidArgumentError, match="Invalid name"):
            registry.look_up("Evil")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [f"Evil{ATTACK}", f"_{ATTACK}", "_a b", "Evil\n", "_>", "A>b()"])
def test_an_op_of_no_valid_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="Invalid name"):
        OpRegistry().register(OpDef(name=name))


@pytest.mark.parametrize("name", [ATTACK, "a b", "x=1", "a\n", "", "é", "x)"])
def test_a_function_whose_argument_has_no_valid_name_does_not_enter_a_library(name: str) -> None:
    function = FunctionDef(signature=OpDef(name="f", input_arg=(ArgDef(name=name, type=gc.float32),)))
    library = FunctionLibraryDefinition()
    with pytest.raises(InvalidArgumentError, match="Invalid name of an argument of function 'f'"):
        library.add_function_def(function)
    with pytest.raises(InvalidArgumentError, match="Invalid name of an argument of function 'f'"):
        library.add_library(FunctionDefLibrary((function,)))
    with pytest.raises(InvalidArgumentError, match="Invalid name of an argument of function 'f'"):
        FunctionLibraryDefinition(None, FunctionDefLibrary((function,)))


def test_an_op_list_with_pythons_words_as_names_is_called_with_these_words(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = OpRegistry()
    registry.register(gc.op_registry.look_up("Const"))
    monkeypatch.setattr("graphcore.api.ops.op_registry", registry)
    names = ["lambda", "lambda_", "name", "node_name", "finish", "apply", "op", "attrs", "p0", "n1"]
    op_def = OpDef(
        name="SpokenWords",
        input_arg=tuple([ArgDef(name=name, type=gc.float32) for name in names]),
        attr=(AttrDef(name="def", type="int"), AttrDef(name="class", type="string", default_value=b"'''")),
    )
    gc.register_op_list([op_def], registry)
    call = gc.ops.spoken_words
    assert list(inspect.signature(call).parameters) == [
        "lambda_", "lambda__", "name", "node_name", "finish", "apply", "op", "attrs", "p0", "n1", "def_", "class_", "node_name_",
    ]  # fmt: skip
    with gc.Graph(registry).as_default():
        node = call(*[1.0] * len(names), def_=3, class_="*/", node_name_="made")
    assert (node.name, node.get_attr("def"), node.get_attr("class")) == ("made", 3, b"*/")


def test_the_code_of_a_plan_contains_no_name_of_its_nodes() -> None:
    with gc.Graph().as_default():
        x = gc.placeholder(gc.float32, [2], name="os.system")
        y = gc.ops.tanh(x, name="import_os")
        with gc.Session() as session:
            assert session.run(y, {x: [0, 0]}).tolist() == [0, 0]
