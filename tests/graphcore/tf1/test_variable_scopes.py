"""`variable_scope` and `get_variable` in scripts: names, sharing, defaults and errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc


@pytest.fixture(autouse=True)
def graph() -> Iterator[gc.Graph]:
    with gc.Graph().as_default() as made:
        yield made


def test_a_second_variable_of_a_name_is_an_error_with_the_line_of_the_first() -> None:
    with gc.variable_scope("a"):
        gc.get_variable("w", [2])
        with pytest.raises(
            gc.errors.AlreadyExistsError, match=r"(?s)Variable a/w already exists.*made in test_variable_scopes.py, line"
        ) as caught:
            gc.get_variable("w", [2])
    assert isinstance(caught.value, ValueError), "programs catch this class"


def test_reuse_takes_the_variable_and_refuses_a_missing_one() -> None:
    with gc.variable_scope("a") as scope:
        first = gc.get_variable("w", [2])
        scope.reuse_variables()
        assert gc.get_variable("w") is first
    with gc.variable_scope("a", reuse=True), gc.variable_scope("b", reuse=False), pytest.raises(ValueError, match="a/b/v does not exist"):
        gc.get_variable("v", [1])
    gc.Variable(0.0, name="plain")
    with gc.variable_scope("", reuse=True), pytest.raises(ValueError, match="plain does not exist, or was not created with get_variable"):
        gc.get_variable("plain")


def test_auto_reuse_makes_and_takes() -> None:
    def layer() -> Any:
        with gc.variable_scope("a", reuse=gc.AUTO_REUSE):
            return gc.get_variable("w", [2])

    assert layer() is layer()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"shape": [3]}, r"Trying to share variable w, but specified shape \[3\] and found shape \[2\]"),
        ({"dtype": gc.int32}, "Trying to share variable w, but specified dtype int32 and found dtype float"),
        ({"initializer": 1.0, "shape": [2]}, "do not specify shape"),
        ({"partitioner": object()}, "a partitioner divides a variable into several"),
    ],
)
def test_what_does_not_fit_the_existing_variable_is_refused(arguments: dict[str, Any], text: str) -> None:
    gc.get_variable("w", [2])
    with gc.variable_scope("", reuse=True), pytest.raises((ValueError, NotImplementedError), match=text):
        gc.get_variable("w", **arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"shape": [None, 2]}, r"required a fully defined shape, .*; got the shape \[\?,2\]"),
        ({"initializer": gc.zeros_initializer()}, "required a fully defined shape"),
        ({"initializer": np.zeros(2), "dtype": gc.float32}, "Initializer type 'double' and explicit dtype 'float' don't match"),
        ({"shape": [1], "dtype": gc.complex64}, "An initializer for variable v of complex64 is required"),
        ({"shape": [1], "custom_getter": 5}, "required a function as custom_getter, got 5"),
    ],
)
def test_a_variable_that_cannot_be_made_says_what_is_required(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        gc.get_variable("v", **arguments)


def test_scopes_refuse_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="required name_or_scope or default_name"):
        gc.variable_scope(None)
    with pytest.raises(ValueError, match="required a name or a VariableScope"):
        gc.variable_scope(gc.float32)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValueError, match="required True, False, None or AUTO_REUSE as reuse"):
        gc.variable_scope("a", reuse="yes")  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ValueError, match="cannot be used without a name_or_scope"), gc.variable_scope(None, "a", reuse=True):
        pass
    with pytest.raises(NotImplementedError, match="variable scope 'a': a partitioner divides"):
        gc.variable_scope("a", partitioner=lambda **_: [1])


def test_settings_of_a_scope_are_defaults_of_the_variables_in_it() -> None:
    with gc.variable_scope("a", initializer=gc.constant_initializer(3.0), dtype=gc.float64, use_resource=True) as scope:
        w = gc.get_variable("w", [2])
        assert gc.Variable(0.0).is_resource, "the scope says so for all variables"
        with gc.variable_scope("b", use_resource=False):
            scope_of_b = gc.get_variable_scope()
            v = gc.get_variable("v", [1], gc.float32)
        scope.set_initializer(gc.ones_initializer)
        u = gc.get_variable("u", [1])
    assert (w.dtype, w.is_resource, v.dtype, v.is_resource) == (gc.float64, True, gc.float32, False)
    assert scope_of_b.name == "a/b"
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        assert [np.asarray(value).tolist() for value in session.run([w, v, u])] == [[3.0, 3.0], [3.0], [1.0]]


def test_losses_of_regularizers_join_their_collection() -> None:
    def square(value: Any) -> Any:
        return gc.reduce_sum(gc.square(value), name="square")

    with gc.variable_scope("a", regularizer=square):
        gc.get_variable("w", initializer=gc.constant([3.0]))
        gc.get_variable("b", [1], regularizer=gc.no_regularizer)
    (loss,) = gc.get_collection(gc.GraphKeys.REGULARIZATION_LOSSES)
    assert loss.name == "a/w/Regularizer/square_1:0"  # beside the node Square
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        assert session.run(loss) == 9.0


def test_custom_getters_nest_from_the_inside_out() -> None:
    calls = []

    def named(label: str) -> Any:
        def getter(getter: Any, name: str, *args: Any, **keywords: Any) -> Any:
            calls.append((label, name))
            return getter(name, *args, **keywords)

        return getter

    with gc.variable_scope("a", custom_getter=named("outer")), gc.variable_scope("b", custom_getter=named("inner")):
        gc.get_variable("w", [1])
    assert calls == [("inner", "a/b/w"), ("outer", "a/b/w")]


def test_a_custom_getter_may_return_something_else() -> None:
    def doubled(getter: Any, *args: Any, **keywords: Any) -> Any:
        return gc.multiply(getter(*args, **keywords), 2.0, name="doubled")

    assert gc.get_variable("w", [1], custom_getter=doubled).name == "doubled:0"


def test_local_variables_are_not_saved_nor_trained() -> None:
    v = gc.get_local_variable("v", [1])
    assert gc.local_variables() == [v]
    assert gc.global_variables() == gc.trainable_variables() == []


def test_a_variable_of_a_loop_body_lies_outside_of_it() -> None:
    def body(i: Any, total: Any) -> tuple[Any, Any]:
        with gc.variable_scope("step", reuse=gc.AUTO_REUSE):
            w = gc.get_variable("w", initializer=2.0)
        return i + 1, total * w

    with gc.variable_scope("model"):
        _, result = gc.while_loop(lambda i, _: i < 3, body, [0, 1.0])
    assert [variable.name for variable in gc.global_variables()] == ["model/step/w:0"]
    with gc.Session() as session:
        session.run(gc.global_variables_initializer())
        assert session.run(result) == 8.0


def test_a_failed_transaction_leaves_no_variable_behind(graph: gc.Graph) -> None:
    def make() -> None:
        with graph.transaction():
            gc.get_variable("w", [1])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        make()
    assert gc.get_variable("w", [2]).shape == [2]


def test_threads_have_scopes_of_their_own(graph: gc.Graph) -> None:
    names = []

    def other() -> None:
        with graph.as_default():
            names.append(gc.get_variable_scope().name)

    with gc.variable_scope("a"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert names == [""]


def test_blocks_that_are_left_in_another_order_are_an_error() -> None:
    a, b = gc.variable_scope("a"), gc.variable_scope("b")
    a.__enter__()
    b.__enter__()
    with pytest.raises(RuntimeError, match="Improper nesting of variable_scope"):
        a.__exit__(None, None, None)


def test_a_template_shares_its_variables_among_its_calls() -> None:
    def linear(x: Any, size: int) -> Any:
        return x * gc.get_variable("w", [size])

    template = gc.make_template("linear", linear, size=2)
    template(gc.ones([2]))
    template(gc.zeros([2]))
    gc.make_template("linear", linear, size=3)(gc.ones([3]))
    assert [variable.name for variable in gc.trainable_variables()] == ["linear/w:0", "linear_1/w:0"]
    assert [variable.name for variable in template.trainable_variables] == ["linear/w:0"]


def test_a_template_refuses_new_variables_in_a_later_call() -> None:
    template = gc.make_template("t", lambda: gc.Variable(1.0))
    template()
    with pytest.raises(ValueError, match="perhaps you used Variable when you meant get_variable"):
        template()


def test_configurations_of_initializers_make_equal_ones() -> None:
    made = gc.variance_scaling_initializer(2.0, mode="fan_out", distribution="uniform", seed=3)
    assert made.get_config() == {"scale": 2.0, "mode": "fan_out", "distribution": "uniform", "seed": 3, "dtype": "float32"}
    assert type(made).from_config(made.get_config()).get_config() == made.get_config()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: gc.variance_scaling_initializer(scale=0.0), "required a scale above 0, got 0.0"),
        (lambda: gc.variance_scaling_initializer(mode="fan"), "required fan_in, fan_out, fan_avg as mode, got 'fan'"),
        (lambda: gc.initializers.identity()([2, 2, 2]), r"can only be used for 2D matrices, got the shape \[2,2,2\]"),
        (lambda: gc.orthogonal_initializer()([2]), "must be at least two-dimensional"),
        (lambda: gc.truncated_normal_initializer(dtype=gc.int32), "TruncatedNormal: required a floating dtype, got int32"),
        (lambda: gc.constant_initializer(object()), "required a number, list or array as value, got a object"),
    ],
)
def test_initializers_refuse_what_they_cannot_make(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()
