"""Arguments of the wrong kind: errors name argument, requirement and value, without side effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.errors import CancelledError, GraphError, InvalidArgumentError, NotFoundError

# Wrongly typed arguments, hidden from the type checker.
session_of: Any = gc.Session
direct_session_of: Any = gc.DirectSession
run_options: Any = gc.RunOptions
session_options: Any = gc.SessionOptions
save: Any = gc.save_variables
restore: Any = gc.restore_variables


class Setting(NamedTuple):
    """A session that has run `y` fed with `feeds`, and a node that adds to a variable."""

    session: Any
    x: gc.Tensor
    y: Any
    step: gc.Tensor
    feeds: dict[Any, Any]


@pytest.fixture
def setting() -> Setting:
    with gc.Graph().as_default() as graph:
        x = gc.placeholder(gc.float32, [2], name="x")
        w = gc.Variable(np.zeros(2, np.float32), name="w")
        step = w.assign_add(x)
        y = gc.identity(x * 2.0, name="y")
    session = session_of(graph=graph)
    session.run(w.initializer)
    feeds: dict[Any, Any] = {x: [1.0, 2.0]}
    session.run(y, feeds)
    session.run(step, feeds)
    return Setting(session, x, y, step, feeds)


TRACED = run_options(trace=True)
REFUSED: dict[str, tuple[Callable[[Setting], Any], str]] = {
    "graph of another kind": (lambda _: session_of(graph={}), "graph: required a gc.Graph, or None for the default graph, got dict"),
    "session options": (
        lambda s: session_of(s.session.graph, options=TRACED),
        "options: required gc.SessionOptions or None, got RunOptions",
    ),
    "empty session options": (lambda s: session_of(s.session.graph, options={}), "options: required gc.SessionOptions or None, got dict"),
    "options of a direct session": (lambda _: direct_session_of({}), "options: required gc.SessionOptions or None, got dict"),
    "engine": (lambda _: session_of(engine=np.ones(2)), "Required one of the engines 'auto', 'plan', 'dataflow', got"),
    "target": (lambda _: session_of(target=5), "target: required a name, got int 5"),
    "options": (lambda s: s.session.run(s.step, s.feeds, "x"), "options: required gc.RunOptions or None, got str 'x'"),
    "empty options": (lambda s: s.session.run(s.step, s.feeds, {}), "options: required gc.RunOptions or None, got dict"),
    "options of what is not planned": (lambda s: s.session.run([s.step], s.feeds, {}), "options: required gc.RunOptions or None"),
    "options that are a class": (lambda s: s.session.run(s.step, s.feeds, gc.RunOptions), "got the class RunOptions"),
    "metadata": (lambda s: s.session.run(s.step, s.feeds, TRACED, {}), "run_metadata: required gc.RunMetadata or None, got dict"),
    "metadata without options": (
        lambda s: s.session.run(s.step, s.feeds, None, []),
        "run_metadata: required gc.RunMetadata or None, got list",
    ),
    "metadata of what is not planned": (
        lambda s: s.session.run([s.step], s.feeds, run_metadata=gc.RunMetadata),
        "run_metadata: required gc.RunMetadata or None, got the class RunMetadata",
    ),
    "feeds as a list": (
        lambda s: s.session.run(s.step, [s.x]),
        "feed_dict: required a mapping from tensors or names to values, or None, got list",
    ),
    "feeds as a tuple": (lambda s: s.session.run([s.step], (s.x, [1.0, 2.0])), "feed_dict: required a mapping"),
    "feeds as an array": (lambda s: s.session.run(s.step, np.ones(2)), "feed_dict: required a mapping .*, got ndarray"),
    "feeds as a tensor": (lambda s: s.session.run(s.step, s.x), r"feed_dict: required a mapping .*, got <gc.Tensor 'x:0' float \[2\]>"),
    "feeds as a number": (lambda s: s.session.run(s.step, 5), "feed_dict: required a mapping .*, got int 5"),
    "plan": (lambda s: s.session.plan(s.step, 5), "feed_dict: required a mapping"),
    "predicted peak": (lambda s: s.session.predicted_peak(s.y, [s.x]), "feed_dict: required a mapping"),
    "feed list by name": (
        lambda s: s.session.make_callable(s.step, "x:0"),
        "feed_list: required a list of tensors or names, got str 'x:0'",
    ),
    "feed list of one tensor": (
        lambda s: s.session.make_callable(s.step, s.x),
        "feed_list: required a list of tensors or names, got <gc.Tensor 'x:0'",
    ),
    "feed list of a number": (
        lambda s: s.session.make_callable(s.step, [5]),
        "Cannot feed 5: Required a tensor, a node or a name, got 5 of type int",
    ),
    "connections": (lambda s: s.session.make_callable(s.step, [], "ab"), "connections: required a list of pairs of names, got str 'ab'"),
    "connections that are no pairs": (
        lambda s: s.session.make_callable(s.step, [], ["ab"]),
        "connections: required pairs of names of tensors, from and to, got str 'ab'",
    ),
    "connections of tensors": (lambda s: s.session.make_callable(s.step, [], [(s.y, s.x)]), "connections: required pairs of names"),
    "partial feeds by name": (
        lambda s: s.session.partial_run_setup(s.step, "x:0"),
        "feeds: required a list of tensors or names, got str 'x:0'",
    ),
    "partial feeds of a number": (
        lambda s: s.session.partial_run_setup(s.step, 1.5),
        "feeds: required a list of tensors or names, got float 1.5",
    ),
    "handle": (lambda s: s.session.partial_run(["h"], s.step), "handle: required what partial_run_setup gave, got list"),
    "nothing to fetch": (lambda s: s.session.run(None), "Cannot fetch None: required a tensor, a node, a variable, a name"),
    "no handle": (lambda s: s.session.partial_run(None, s.step), "handle: required what partial_run_setup gave, got NoneType"),
    "containers": (lambda s: s.session.reset("w"), "containers: required a list of names, got str 'w'"),
    "a container": (lambda s: s.session.reset([5]), "containers: required a list of names, got int 5"),
    "session": (lambda s: s.y.eval(s.feeds, "s"), "session: required a gc.Session, or None for the default session, got str 's'"),
    "session class": (
        lambda s: s.y.eval(s.feeds, gc.Session),
        "session: required a gc.Session, or None for the default session, got the class Session",
    ),
    "time limit": (
        lambda _: run_options(timeout_in_ms="5"),
        "timeout_in_ms: required milliseconds, or 0 for as long as it takes, got '5'",
    ),
    "no time limit": (lambda _: run_options(timeout_in_ms=float("nan")), "timeout_in_ms: required milliseconds, .*, got nan"),
    "session to save": (lambda s: save("f.npz", s.session), "session: required a gc.Session, got str 'f.npz'"),
    "session to restore": (lambda s: restore("f.npz", s.session), "session: required a gc.Session, got str 'f.npz'"),
    "file to save to": (lambda s: save(s.session, None), "path: required the name of a file, got NoneType"),
    "file to restore from": (lambda s: restore(s.session, b"f"), "path: required the name of a file, got bytes b'f'"),
    "abort": (lambda s: s.session.rendezvous.start_abort("over"), "status: required an error of graphcore.errors, got 'over'"),
    "trace": (lambda _: run_options(trace=np.ones(2)), "trace: required True or False, got array"),
    "trace level": (lambda _: run_options(trace_level="FULL_TRACE"), "trace_level: required a level such as"),
    "threads": (lambda _: session_options(inter_op_threads="two"), "inter_op_threads: required a number of threads, .* got 'two'"),
    "soft placement": (lambda _: session_options(allow_soft_placement="no"), "allow_soft_placement: required True or False, got 'no'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_argument_of_the_wrong_kind_is_refused_and_nothing_has_happened(name: str, setting: Setting) -> None:
    call, text = REFUSED[name]
    with pytest.raises(InvalidArgumentError, match=text):
        call(setting)
    assert setting.session.run("w:0").tolist() == [1, 2]
    assert setting.session.run(setting.y, setting.feeds).tolist() == [2, 4]
    assert setting.session.trace is None


def test_metadata_describes_its_last_run_only(setting: Setting) -> None:
    metadata = gc.RunMetadata()
    for options in (None, gc.RunOptions(), gc.RunOptions(timeout_in_ms=60_000)):
        setting.session.run(setting.y, setting.feeds, TRACED, metadata)
        assert metadata.trace is not None
        setting.session.run(setting.y, setting.feeds, options, metadata)
        assert metadata.trace is None


def test_objects_around_sessions_have_a_descriptive_repr(setting: Setting) -> None:
    session, x = setting.session, setting.x
    call = session.make_callable(setting.y, [x])
    assert repr(call) == "<SessionCallable (x:0)>"
    call.release()
    assert repr(call) == "<SessionCallable released>"
    rendezvous = gc.Rendezvous()
    key = gc.create_key("/job:a/replica:0/task:0/device:CPU:0", 1, "/job:a/replica:0/task:0/device:CPU:0", "v")
    rendezvous.send(key, None, 1.0)
    assert repr(rendezvous) == "<gc.Rendezvous 1 values sent, 0 receives waiting>"
    rendezvous.start_abort(CancelledError("over"))
    assert repr(rendezvous) == "<gc.Rendezvous aborted: CancelledError>"
    ended = gc.CancellationManager()
    ended.register_callback(ended.get_cancellation_token(), lambda: None)
    assert repr(ended) == "<gc.CancellationManager 1 callbacks>"
    ended.start_cancel()
    assert repr(ended) == "<gc.CancellationManager cancelled>"

    @gc.function
    def twice(t: Any, by: float = 2.0) -> Any:
        return t * by

    assert repr(twice) == "<gc.Function twice(t: 'Any', by: 'float' = 2.0) -> 'Any'>"
    with session.graph.as_default():
        twice(x)
    assert repr(session.graph.library) == "<gc.FunctionLibraryDefinition 1 functions, 0 gradients>"


def test_a_wrong_argument_of_a_partial_run_leaves_the_run_as_it_was(setting: Setting) -> None:
    session, x, y = setting.session, setting.x, setting.y
    handle = session.partial_run_setup(y, [x])
    for feeds in ([x], "x:0", 5, np.ones(2)):
        with pytest.raises(InvalidArgumentError, match="feed_dict: required a mapping"):
            session.partial_run(handle, y, feeds)
    assert session.partial_run(handle, y, setting.feeds).tolist() == [2, 4]


ODD: tuple[Any, ...] = (
    5,
    1.5,
    True,
    "g",
    b"x",
    object(),
    object,
    len,
    {"a": 1},
    [5],
    (1, 2),
    {1, 2},
    [[1]],
    [("a",)],
    np.ones(2),
    np.float32(1),
)


@pytest.mark.parametrize("odd", ODD, ids=lambda value: type(value).__name__)
def test_any_wrong_argument_is_an_error_of_this_package(odd: Any, setting: Setting) -> None:
    session, x, y, _, feeds = setting
    handle = session.partial_run_setup(y, [x])
    calls: list[Callable[[], Any]] = [
        lambda: session_of(odd),
        lambda: session_of(session.graph, options=odd),
        lambda: session_of(session.graph, engine=odd),
        lambda: session_of(session.graph, target=odd),
        lambda: session.run(odd),
        lambda: session.run(y, odd),
        lambda: session.run(y, feeds, odd),
        lambda: session.run(y, feeds, TRACED, odd),
        lambda: session.make_callable(odd),
        lambda: session.make_callable(y, odd),
        lambda: session.make_callable(y, [x], odd),
        lambda: session.partial_run_setup(odd),
        lambda: session.partial_run_setup(y, odd),
        lambda: session.partial_run(odd, y),
        lambda: session.partial_run(handle, odd),
        lambda: session.partial_run(handle, y, odd),
        lambda: session.plan(odd),
        lambda: session.plan(y, odd),
        lambda: session.predicted_peak(odd),
        lambda: session.predicted_peak(y, odd),
        lambda: y.eval(feeds, odd),
    ]
    for call in calls:
        with pytest.raises((InvalidArgumentError, NotFoundError)) as caught:
            call()
        assert isinstance(caught.value, GraphError)
        assert caught.value.message
