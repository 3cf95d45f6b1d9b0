"""Builds OpDefs from specs in a chain, with all errors reported together at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphcore import dtypes
from graphcore.definitions.arg_spec import ArgSpecParser
from graphcore.definitions.attr_spec import AttrSpecParser
from graphcore.definitions.op_doc import split_doc
from graphcore.definitions.types import ArgDef, AttrDef, OpDef, OpDeprecation
from graphcore.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

_ARG_KINDS = {"input": "Input", "output": "Output"}


class OpDefBuilder:
    """`OpDefBuilder("Add").input("x: T").input("y: T").output("z: T").attr("T: numbertype").finalize()`.

    Specs may come in any order; inputs, outputs and attrs keep theirs. Nothing is checked before `finalize`.

    Args:
        name: the op's name, such as `MatMul`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._attrs: list[str] = []
        self._inputs: list[str] = []
        self._outputs: list[str] = []
        self._control_outputs: list[str] = []
        self._doc = ""
        self._flags: dict[str, Any] = {}
        self._errors: list[str] = []
        self.shape_fn: Callable[[Any], None] | None = None

    def attr(self, spec: str) -> OpDefBuilder:
        """Add an attr: `name: type [>= min] [= default]`."""
        self._attrs.append(spec)
        return self

    def input(self, spec: str) -> OpDefBuilder:
        """Add an input: `name: [n *] type` or `name: Ref(type)`, where type is a data type or an attr's name."""
        self._inputs.append(spec)
        return self

    def output(self, spec: str) -> OpDefBuilder:
        """Add an output; the form is that of `input`."""
        self._outputs.append(spec)
        return self

    def control_output(self, name: str) -> OpDefBuilder:
        """Add a control output."""
        self._control_outputs.append(name)
        return self

    def doc(self, text: str) -> OpDefBuilder:
        """Set the doc: a summary line, a blank line, the description, then `name: text` for args and attrs."""
        if self._doc:
            self._errors.append(f"Extra call to Doc() for Op {self._name}")
        else:
            self._doc = text
        return self

    def set_is_commutative(self) -> OpDefBuilder:
        """Declare that the op's two inputs may be exchanged."""
        self._flags["is_commutative"] = True
        return self

    def set_is_aggregate(self) -> OpDefBuilder:
        """Declare that the op takes any number of equal inputs and may be split into partial aggregations."""
        self._flags["is_aggregate"] = True
        return self

    def set_is_stateful(self) -> OpDefBuilder:
        """Declare that two runs with equal inputs may differ, or that a run has side effects."""
        self._flags["is_stateful"] = True
        return self

    def set_allows_uninitialized_input(self) -> OpDefBuilder:
        """Declare that the op takes uninitialised reference inputs."""
        self._flags["allows_uninitialized_input"] = True
        return self

    def deprecated(self, version: int, explanation: str) -> OpDefBuilder:
        """Declare that the op is refused in graphs of GraphDef `version` and later, with a reason."""
        if "deprecation" in self._flags:
            self._errors.append(f"Deprecated called twice for Op {self._name}")
        else:
            self._flags["deprecation"] = OpDeprecation(version, explanation)
        return self

    def set_shape_fn(self, shape_fn: Callable[[Any], None]) -> OpDefBuilder:
        """Set the shape function."""
        if self.shape_fn is not None:
            self._errors.append(f"SetShapeFn called twice for Op {self._name}")
        else:
            self.shape_fn = shape_fn
        return self

    def finalize(self) -> OpDef:
        """Build the OpDef. May be called repeatedly.

        Raises:
            InvalidArgumentError: the specs have errors, reported one a line.
        """
        errors = list(self._errors)
        attrs = [self._parse_attr(spec, errors) for spec in self._attrs]
        inputs = [self._parse_arg(spec, "input", attrs, errors) for spec in self._inputs]
        outputs = [self._parse_arg(spec, "output", attrs, errors) for spec in self._outputs]
        flags = dict(self._flags)
        # An op that takes a resource handle probably changes the resource.
        if any(arg.get("type") is dtypes.resource for arg in inputs + outputs):
            flags["is_stateful"] = True
        summary, description = self._describe([*inputs, *outputs, *attrs], errors)
        if errors:
            raise InvalidArgumentError("\n".join(errors), op=self._name)
        return OpDef(
            name=self._name,
            input_arg=tuple(ArgDef(**fields) for fields in inputs),
            output_arg=tuple(ArgDef(**fields) for fields in outputs),
            control_output=tuple(self._control_outputs),
            attr=tuple(AttrDef(**fields) for fields in attrs),
            summary=summary,
            description=description,
            **flags,
        )

    def _parse_attr(self, spec: str, errors: list[str]) -> dict[str, Any]:
        parser = AttrSpecParser(spec)
        try:
            parser.parse()
        except InvalidArgumentError as error:
            errors.append(f'{error.message} from Attr("{spec}") for Op {self._name}')
        return parser.fields

    def _parse_arg(self, spec: str, direction: str, attrs: list[dict[str, Any]], errors: list[str]) -> dict[str, Any]:
        parser = ArgSpecParser(spec)
        try:
            parser.parse({attr["name"]: attr["type"] for attr in reversed(attrs)})
        except InvalidArgumentError as error:
            errors.append(f'{error.message} from {_ARG_KINDS[direction]}("{spec}") for Op {self._name}')
            return parser.fields
        length = parser.fields.get("number_attr") or parser.fields.get("type_list_attr")
        attr = next((attr for attr in attrs if attr["name"] == length), None)
        # A list of args has at least one element unless its attr says otherwise.
        if attr is not None and "has_minimum" not in attr:
            attr["has_minimum"], attr["minimum"] = True, 1
        return parser.fields

    def _describe(self, parts: list[dict[str, Any]], errors: list[str]) -> tuple[str, str]:
        summary, description, items = split_doc(self._doc)
        for name, text in items:
            named = [part for part in parts if part["name"] == name]
            if not named:
                errors.append(f"No matching input/output/attr for name '{name}' from Doc() for Op {self._name}")
                break
            for part in named:
                part["description"] = text
        return summary, description
