"""TensorFlow 1's namespaces: loaded on demand, imported in any form, with errors that help."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

import graphcore as gc
from graphcore.tf1.names.absent import ABSENT, what_to_use


def test_a_namespace_is_an_attribute_and_a_module() -> None:
    from graphcore.app import flags as by_from  # type: ignore[import-untyped]  # noqa: PLC0415 - imports are what is tested
    from graphcore.compat import v1  # type: ignore[import-untyped]  # noqa: PLC0415 - imports are what is tested

    module = __import__("graphcore.gfile", fromlist=["GFile"])
    assert gc.gfile is module
    assert gc.flags is gc.app.flags is by_from
    assert v1 is gc
    assert gc.__spec__ is not None
    assert gc.__spec__.name == "graphcore"


def test_a_namespace_is_loaded_when_it_is_first_asked_for() -> None:
    code = "import sys, graphcore as gc; before = set(sys.modules); assert 'graphcore.tf1.gfile' not in before; gc.gfile.GFile"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'graphcore.tf1.gfile' in sys.modules"], check=True)


def test_a_namespace_with_two_names_has_the_same_names_under_both() -> None:
    code = "import graphcore as gc; gc.contrib.saved_model; gc.saved_model.builder.SavedModelBuilder"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dir_lists_the_namespaces_and_their_names() -> None:
    assert {"app", "flags", "gfile", "constant"} <= set(dir(gc))
    assert "FLAGS" in dir(gc.flags)
    assert "annotations" not in dir(gc.flags)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("contrib.slim.nets", r"tf\.contrib\.slim\.nets of TensorFlow 1 was networks such as .*gc\.contrib\.slim"),
        ("contrib.frob", r"tf\.contrib of TensorFlow 1 was "),
        ("estimator", r"tf\.estimator of TensorFlow 1 was .*gc\.Session"),
        ("distribute", r"distribution strategies.*gc\.train\.replicate"),
        ("keras", r"gc\.nn\.conv2d"),
        ("enable_eager_execution", "eager execution.* gc.Session runs it"),
        ("fixed_size_partitioner", "divides a variable into several, .*; variables are whole here, so leave the partitioner out"),
        ("variable_creator_scope", "the custom_getter of gc.variable_scope"),
        ("vectorized_map", "tf.vectorized_map of TensorFlow 1 is not available here$"),
    ],
)
def test_what_is_not_here_says_what_it_was_and_what_to_use(name: str, text: str) -> None:
    module, _, attribute = name.rpartition(".")
    with pytest.raises(AttributeError, match=text):
        getattr(getattr(gc, module) if module else gc, attribute)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("from graphcore.contrib import eager", "eager execution"),
        ("import graphcore.contrib.slim.nets", r"gc\.contrib\.slim"),
        ("from graphcore import keras", r"gc\.nn\.conv2d"),
        ("import graphcore.keras.layers", r"gc\.nn\.conv2d"),
        ("from graphcore.examples.tutorials.mnist import input_data", "examples"),
        ("import graphcore.frobnicate", "^No module named 'graphcore.frobnicate'$"),
    ],
)
def test_an_import_of_what_is_not_here_says_so_too(statement: str, text: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=text):
        exec(statement)


def test_a_misspelling_within_a_namespace_suggests_the_name() -> None:
    with pytest.raises(AttributeError, match=r"^module 'graphcore.gfile' has no attribute 'GFil': did you mean gc\.gfile\.GFile\?$"):
        _ = gc.gfile.GFil  # type: ignore[attr-defined]  # a misspelling on purpose
    with pytest.raises(AttributeError, match=r"has no attribute 'frobnicate'; dir\(gc\.gfile\) lists what is there$"):
        _ = gc.gfile.frobnicate  # type: ignore[attr-defined]  # a name that TensorFlow never had


def test_a_misspelt_namespace_suggests_it() -> None:
    with pytest.raises(AttributeError, match=r"did you mean gc\.loggin?g\?"):
        _ = gc.loging  # type: ignore[attr-defined]  # a misspelling on purpose


@pytest.mark.parametrize("name", ABSENT)
def test_what_is_recommended_for_an_absent_name_is_there(name: str) -> None:
    for path in re.findall(r"gc(?:\.\w+)+", what_to_use(name)):
        found: Any = gc
        for part in path.split(".")[1:]:
            found = getattr(found, part)
        assert found is not None


def test_optimizers_are_found_where_tensorflow_has_them() -> None:
    train: Any = gc.train  # type: ignore[attr-defined]  # found on demand
    assert train.AdamOptimizer is gc.AdamOptimizer
    assert train.GradientDescentOptimizer is gc.GradientDescentOptimizer
    assert train.MomentumOptimizer is gc.MomentumOptimizer
