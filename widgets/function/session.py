"""A session of navigation through functions, with the two pictures of the current one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

import msgspec

from graphcore.attrs import Func
from graphcore.definitions import FunctionDef
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph import Graph
from graphcore.passes import InstantiatedFunctions
from graphcore.registry import get_op_gradient_creator
from widgets import messages, requests
from widgets.function.subject import GradientSubject, Subject, Use, first_uses, use_of
from widgets.function_views import Crumb
from widgets.messages import FailureMessage, FunctionMessage, Message, PaneMessage, PictureMessage
from widgets.port import Port
from widgets.render.messages import scene_message
from widgets.scene.calls import Callee, callees
from widgets.scene.explain import locate
from widgets.scene.state import MAX_BOXES, SceneState
from widgets.scene.types import Scene
from widgets.scene.words import counted

MAX_STEPS: Final = 40

Send = Callable[[Message, list[bytes]], None]
"""Sends a message with its binary buffers."""


class FunctionSession:
    """Shows functions, one after the other.

    Args:
        send: a callback for each message.
        root: the label of the first breadcrumb: the graph that the first function was opened from. "" if there is none.
    """

    def __init__(self, send: Send, root: str = "") -> None:
        self._send = send
        self._root = root
        self._revisions = count(1)
        self._pages: list[_Page] = []

    @property
    def subject(self) -> Subject:
        """The current function."""
        return self._pages[-1].subject

    @property
    def scene(self) -> Scene:
        """The picture of the current body."""
        return self._pages[-1].port.scene

    def open(self, subject: Subject) -> None:
        """Navigate to another function.

        Raises:
            InvalidArgumentError: there are too many breadcrumbs.
        """
        if len(self._pages) >= MAX_STEPS:
            raise InvalidArgumentError(f"{MAX_STEPS} functions deep: go back before opening another one")
        self._pages.append(_Page(subject, self._revisions, self._send))

    def message(self) -> FunctionMessage:
        """The message with texts, form and breadcrumbs of the current function."""
        subject = self.subject
        return FunctionMessage(
            name=subject.name,
            crumbs=[*([Crumb(label=self._root)] if self._root else []), *[page.subject.crumb() for page in self._pages]],
            definition=subject.definition.text,
            instantiated=subject.text,
            fields=subject.fields(),
            uses=[use.shown() for use in subject.uses],
            chosen=subject.chosen,
            derived=subject.derived,
            problem=subject.problem,
            gradient=f"∇ {subject.label}" if subject.body is not None else "",
            revision=next(self._revisions),
        )

    def send(self, *, pictures: bool = True) -> None:
        """Send all messages for the current function."""
        self._send(self.message(), [])
        if pictures:
            self._pages[-1].send()

    def back(self, crumb: int) -> bool:
        """Navigate back to a breadcrumb; False if it is the graph."""
        kept = crumb + (0 if self._root else 1)
        if kept <= 0:
            return False
        del self._pages[kept:]
        self.send()
        return True

    def answer(self, request: Any) -> None:
        """Answer a request of the viewer.

        Raises:
            GraphError: it cannot be fulfilled.
        """
        page = self._pages[-1]
        match request:
            case requests.ReadyRequest():
                self.send(pictures=False)
            case requests.SetAttrRequest(name=name, value=value):
                changed = page.subject.set(name, value)
                self._send(self.message(), [])
                if changed and not page.subject.problem:
                    page.show_body()
            case requests.ChooseUseRequest(place=place):
                if page.subject.choose(place):
                    page.show_body()
                    self.send()
            case requests.DifferentiateRequest():
                self._differentiate()
            case requests.PaneRequest(pane=pane, message=requests.OpenFunctionRequest(id=box_id, place=place)):
                self.open(page.callee(pane, box_id, place))
                self.send()
            case requests.PaneRequest(pane=pane, message=inner):
                page.answer(pane, inner)

    def _differentiate(self) -> None:
        subject = self.subject
        if subject.body is None:
            raise InvalidArgumentError(f"{subject.name} has no body to differentiate: {subject.problem}")
        library = subject.functions.library
        named = library.find(library.find_gradient(subject.name))
        if named is not None and not subject.derived:
            use = Use(named.name, named, dict(subject.use.attrs), device=subject.use.device)
            self.open(Subject(use, subject.functions, label=f"∇ {subject.label}"))
        else:
            self.open(GradientSubject(subject))
        self.send()


class _Page:
    """One function with its two pictures."""

    def __init__(self, subject: Subject, revisions: count[int], send: Send) -> None:
        self.subject = subject
        self._revisions = revisions
        self._state = SceneState()
        self._send = send
        self.port = Port(
            subject.graph,
            lambda message, buffers: send(PaneMessage(pane="instance", message=message), buffers),
            title=f"{subject.name} instantiated",
        )

    def send(self) -> None:
        self._send_definition()
        self.port.answer(requests.WholeRequest())

    def _reply(self, message: PictureMessage) -> None:
        self._send(PaneMessage(pane="definition", message=message), [])

    def show_body(self) -> None:
        """Show the new body of the subject."""
        self.port.show(self.subject.graph)
        self.port.send()

    def answer(self, pane: messages.Pane, request: requests.PictureRequest) -> None:
        if pane == "instance":
            self.port.answer(request)
            return
        send, definition = self._reply, self.subject.definition
        match request:
            case requests.ReadyRequest():
                self._send_definition()
            case requests.InspectRequest(id=box_id):
                inspection = definition.inspect(box_id)
                send(
                    FailureMessage(request="inspect", text=f"There is no '{box_id}'")
                    if inspection is None
                    else messages.InspectionMessage(inspection=inspection)
                )
            case requests.SearchRequest(query=query, limit=limit):
                send(definition.find(query, limit=limit))
            case requests.FilterRequest(query=query):
                matching = definition.find(query, limit=MAX_BOXES)
                boxes = [hit.node for hit in matching.hits]
                send(messages.HighlightMessage(boxes=boxes, text=f"{counted(matching.total, 'node')} for {query}"))
            case requests.RendererRequest(renderer=renderer):
                self._state.renderer = renderer
                self._send_definition()

    def callee(self, pane: messages.Pane, box_id: str, place: int) -> Subject:
        """The subject for a function called by a box.

        Raises:
            NotFoundError: the box calls no function of this number, or the function is not defined.
        """
        subject = self.subject
        if pane == "definition":
            callee = subject.definition.callee(box_id, place)
            if callee is None:
                raise NotFoundError(f"'{box_id}' calls no function", node=box_id)
            bound = msgspec.structs.replace(callee, function=Func(callee.function.name, subject.bound(callee)))
            return subject_of(subject.functions, bound)
        return opened_from(subject.graph, subject.functions, box_id, place)

    def _send_definition(self) -> None:
        scene = self.subject.definition.scene(title=f"{self.subject.name} as defined", revision=next(self._revisions))
        self._reply(scene_message(scene, self._state))


def opened_from(graph: Graph, functions: InstantiatedFunctions, box_id: str, place: int) -> Subject:
    """The function called by a box of a graph, with the types, shapes and device of that call.

    Raises:
        NotFoundError: the box calls no function of this number, or the function is not defined.
    """
    located = locate(graph, box_id.removesuffix("/"))
    node = None if located is None else located.node
    called = [] if node is None else callees(node)
    if node is None or not 0 <= place < len(called):
        raise NotFoundError(f"'{box_id}' calls no function", node=box_id)
    callee = called[place]
    use = use_of(functions.library, node, callee)
    if use is None:
        return subject_of(functions, callee, device=node.device)
    uses = [use, *[other for other in first_uses(graph, [callee.function.name]) if other.label != use.label]]
    return Subject(use, functions, uses)


def subject_of(functions: InstantiatedFunctions, callee: Callee, *, device: str = "") -> Subject:
    """A function, or the gradient of a function or op, under the attrs that are bound.

    Raises:
        NotFoundError: it is not defined.
        InvalidArgumentError: there is no gradient.
    """
    name, attrs = callee.function.name, dict(callee.function.attr)
    fdef = functions.library.find(name)
    if not callee.gradient:
        if fdef is None:
            raise NotFoundError(f"Function {name} is not defined.", op=name)
        return Subject(Use(name, fdef, attrs, device=device), functions)
    if fdef is not None:
        return GradientSubject(Subject(Use(name, fdef, attrs, device=device), functions))
    return Subject(Use(name, _op_gradient(name, attrs), attrs, device=device), functions, label=f"∇ {name}")


def _op_gradient(op: str, attrs: dict[str, Any]) -> FunctionDef:
    creator = get_op_gradient_creator(op)
    if creator is None:
        raise InvalidArgumentError(f"No gradient is defined for {op}", op=op)
    public = {key: value for key, value in attrs.items() if not key.startswith("_")}
    made = creator(public)
    return msgspec.structs.replace(made, signature=msgspec.structs.replace(made.signature, name=f"{op}Grad"))
