"""Runs of ONNX models node by node, by onnxruntime's kernels or `onnx.reference`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError, UnimplementedError
from graphcore.frontends.libraries import library
from graphcore.frontends.runners.onnxruntime_kernels import kernels
from graphcore.runtime.runners import inner_call

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignFunction, ForeignNode
    from graphcore.frontends.onnx_reader.tensors import Tensors
    from graphcore.runtime.runners import Watch

_GRAPH: Final = 5
_ROLES: Final = {"then_branch": "then", "else_branch": "else", "body": "body"}


class OnnxRunner:
    """Runs one model.

    The results are those of the plain evaluator, bit for bit; where onnxruntime is installed, those of its kernels, node by node, and of the
    evaluator for nodes for which it has none.

    Values that no later node takes are released at once. The weights are read at the first run, and kept.

    Args:
        model: the `ModelProto`, whose large tensors may lie elsewhere. It stays as it is.
        tensors: reads its tensors.
        main, functions: what the reader has made of it.
    """

    def __init__(self, model: Any, tensors: Tensors, main: ForeignFunction, functions: Mapping[str, ForeignFunction]) -> None:
        self._model = model
        self._tensors = tensors
        self._main = main
        self._functions = functions
        self._graph: _WatchedGraph | None = None
        self._lock = threading.Lock()  # the evaluators of a model know the watch of one run

    def run(self, feeds: Mapping[str, object], watch: Watch | None = None) -> list[object]:
        """Run the model once; see `Runner`."""
        inputs = {node.name: node.outputs[0].name for node in self._main.nodes if node.kind == "input"}
        values = {inputs[name]: value for name, value in _checked(feeds, inputs).items()}
        with self._lock:
            if self._graph is None:
                self._graph = self._prepared()
            graph = self._graph
            graph.shared.watch = watch
            try:
                _give(self._main.nodes, graph.evaluator.rt_inits_, values, watch)
                return graph.run(None, values)
            finally:
                graph.shared.watch = None

    def _prepared(self) -> _WatchedGraph:
        """The evaluator of the model, with its weights.

        Raises:
            GraphError: a weight cannot be read, or the evaluator refuses the model.
        """
        reference = library("onnx.reference", "onnx", "an ONNX model")
        original = self._model
        model = type(original)()
        model.ir_version = original.ir_version
        model.opset_import.extend(original.opset_import)
        model.functions.extend(original.functions)
        graph = model.graph
        graph.name = original.graph.name
        for field in ("input", "output", "value_info", "node"):
            getattr(graph, field).extend(getattr(original.graph, field))
        for node in _nodes_of(model):
            self._complete(node)
        evaluator = _evaluator(reference, model)
        for tensor in original.graph.initializer:
            evaluator.rt_inits_[tensor.name] = self._tensors.array(tensor)
        return _WatchedGraph(evaluator, self._main, self._functions, _Shared())

    def _complete(self, node: Any) -> None:
        """Put tensors that lie elsewhere into the attributes of a node."""
        for attribute in node.attribute:
            held = [attribute.t] if attribute.HasField("t") else []
            graphs = ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs)
            for tensor in [*held, *attribute.tensors, *[tensor for graph in graphs for tensor in graph.initializer]]:
                whole = self._tensors.whole(tensor)
                if whole is not tensor:
                    tensor.CopyFrom(whole)
            for inner in [inner for graph in graphs for inner in graph.node]:
                self._complete(inner)


def _nodes_of(model: Any) -> Iterator[Any]:
    yield from model.graph.node
    for function in model.functions:
        yield from function.node


def _checked(feeds: Mapping[str, object], inputs: Mapping[str, str]) -> Mapping[str, object]:
    """The feeds, if there is one for each input.

    Raises:
        InvalidArgumentError: one is missing.
    """
    missing = [name for name in inputs if name not in feeds]
    if missing:
        raise InvalidArgumentError(f"Required values for the inputs {', '.join(inputs)}; got none for {', '.join(missing)}")
    return feeds


def _give(nodes: Sequence[ForeignNode], weights: Mapping[str, object], values: Mapping[str, object], watch: Watch | None) -> None:
    """Tell the watch of inputs and weights."""
    if watch is None:
        return
    for node in nodes:
        name = node.outputs[0].name if node.outputs else ""
        if node.kind == "input":
            watch.give(node.name, [values[name]])
        elif node.op == "onnx.Initializer" and name in weights:
            watch.give(node.name, [weights[name]])


def _evaluator(reference: Any, model: Any) -> Any:
    """The evaluator of a model. A node without an implementation is refused when it is to run, not before.

    Raises:
        InvalidArgumentError: the evaluator refuses the model.
    """
    plain = reference.ReferenceEvaluator

    def load(self: Any, node: Any, *types: Any) -> Any:
        try:
            return plain._load_impl(self, node, *types)  # the only place where one node can be refused
        except NotImplementedError as error:
            return _absent(reference, node, str(error))
        except RuntimeError as error:
            if type(error) is not RuntimeError:
                raise  # the evaluator itself waits for these
            return _absent(reference, node, str(error))

    try:
        return type("WatchedEvaluator", (plain,), {"_load_impl": load})(model)
    except Exception as error:
        raise InvalidArgumentError(f"onnx's ReferenceEvaluator refuses the model: {str(error)[:500]}") from error


def _absent(reference: Any, node: Any, reason: str) -> Any:
    """The class of a node that has no implementation."""
    op = f"{node.domain or 'ai.onnx'}.{node.op_type}"

    def refuse(*_: object, **__: object) -> object:
        raise UnimplementedError(f"onnx's ReferenceEvaluator has no implementation of {op}: {reason[:300]}")

    return type("Absent", (reference.op_run.OpRun,), {"_run": refuse, "run": refuse})


class _Shared:
    """The common things of the graphs of a model: the watch, their evaluators, and onnxruntime."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self.graphs: dict[int, _WatchedGraph] = {}
        self.kernels = kernels()


class _WatchedGraph:
    """A graph of the model or of a node, or a function, whose evaluator runs as this says.

    Args:
        evaluator: the `ReferenceEvaluator` of the graph.
        function, functions: the graph as the reader gives it, and all of them.
        shared: what the graphs of the model share.

    Attributes:
        around: gives the surrounding calls with the one of this graph, by the number of its run; None for the outermost.
        count: the number of runs in the current run of the node that calls it.
    """

    def __init__(self, evaluator: Any, function: ForeignFunction, functions: Mapping[str, ForeignFunction], shared: _Shared) -> None:
        self.evaluator = evaluator
        self.shared = shared
        self.around: Callable[[int], str] | None = None
        self.count = 0
        self._inputs = [(node.name, node.outputs[0].name) for node in function.nodes if node.kind == "input"]
        nodes = evaluator.rt_nodes_
        read = function.nodes[len(function.nodes) - len(nodes) :]
        self._names = [node.name for node in read]
        shared.graphs[id(evaluator)] = self
        self._called = [list(self._graphs_of(node, of, functions)) for node, of in zip(nodes, read, strict=True)]
        self._dead = _last_uses(nodes, evaluator.output_names)
        evaluator.run = self.run

    def _graphs_of(self, node: Any, read: ForeignNode, functions: Mapping[str, ForeignFunction]) -> Iterator[tuple[str, _WatchedGraph]]:
        """The graphs that a node calls, with their keys."""
        for attribute in node.onnx_node.attribute:
            key = read.bodies.get(_ROLES.get(attribute.name, attribute.name)) if attribute.type == _GRAPH else None
            if key is not None:
                yield key, _WatchedGraph(getattr(node, attribute.name), functions[key], functions, self.shared)
        key = read.bodies.get(node.onnx_node.op_type)
        evaluator = getattr(node, "impl_", None)
        if key is not None and evaluator is not None:
            watched = self.shared.graphs.get(id(evaluator))
            yield key, watched or _WatchedGraph(evaluator, functions[key], functions, self.shared)

    def run(
        self,
        output_names: Sequence[str] | None,
        feed_inputs: Mapping[str, Any],
        attributes: Mapping[str, Any] | None = None,
        **_: object,
    ) -> list[Any]:
        """Run the graph; the arguments are those of the evaluator's own `run`, which this replaces."""
        evaluator, watch, call = self.evaluator, self.shared.watch, self._enter()
        results: dict[str, Any] = {"": None, **evaluator.rt_inits_, **feed_inputs}
        if watch is not None and call:
            for name, value in self._inputs:
                watch.give(name, [results.get(value)], call)
        for place, node in enumerate(evaluator.rt_nodes_):
            name = self._names[place]
            if watch is not None:
                watch.begin(name, call)
            for key, graph in self._called[place]:
                graph.around, graph.count = partial(inner_call, call, name, key), 0
            outputs = self._call(node, results, attributes)
            if watch is not None:
                watch.end(name, outputs, call)
            results.update([(output, value) for output, value in zip(node.output, outputs, strict=False) if output])
            for dead in self._dead[place]:
                results.pop(dead, None)
            del outputs
        return [results[name] for name in output_names or evaluator.output_names]

    def _enter(self) -> str:
        """The surrounding calls of the run that begins."""
        self.count += 1
        return "" if self.around is None else self.around(self.count)

    def _call(self, node: Any, results: Mapping[str, Any], attributes: Mapping[str, Any] | None) -> Sequence[Any]:
        missing = [name for name in node.input if name not in results]
        if missing:
            raise InvalidArgumentError(f"It takes '{missing[0]}', which no node, input or initializer gives")
        inputs = [results[name] for name in node.input]
        by_kernel = self._by_kernel(node, inputs)
        if by_kernel is not None:
            return by_kernel
        keywords: dict[str, Any] = {"linked_attributes": attributes} if node.has_linked_attribute and attributes else {}
        if node.need_context():
            keywords["context"] = results
        outputs: Sequence[Any] = node.run(*inputs, **keywords)
        return outputs

    def _by_kernel(self, node: Any, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """The outputs of a node by a kernel of onnxruntime; None if the evaluator is to run it."""
        kernels, is_called = self.shared.kernels, getattr(node, "impl_", None) is not None
        if kernels is None or is_called or node.has_linked_attribute or node.need_context():
            return None
        return kernels.run(node.onnx_node, inputs, self.evaluator.opsets)


def _last_uses(nodes: Sequence[Any], kept: Iterable[str]) -> list[list[str]]:
    """For each node the values of the graph that no later one takes."""
    last: dict[str, int] = {}
    for place, node in enumerate(nodes):
        last.update(dict.fromkeys([*node.output, *_taken(node.onnx_node)], place))
    made = {name for node in nodes for name in node.output} - {*kept, ""}
    dead: list[list[str]] = [[] for _ in nodes]
    for name, place in last.items():
        if name in made:
            dead[place].append(name)
    return dead


def _taken(node: Any) -> Iterator[str]:
    """The names of the values that a node takes, those within its graphs too."""
    yield from node.input
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.type == _GRAPH else []), *attribute.graphs]:
            yield from [output.name for output in graph.output]
            for inner in graph.node:
                yield from _taken(inner)
