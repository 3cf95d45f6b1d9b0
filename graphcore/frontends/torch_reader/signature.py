"""Signatures of exported programs: what their inputs and outputs stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from graphcore.frontends.torch_reader.trees import leaf_names

if TYPE_CHECKING:
    from graphcore.frontends.torch_reader.schema import GraphModule

INPUT: Final = "torch.Input"
"""The op of a program's inputs."""
STATE: Final = {"parameter": "torch.Parameter", "buffer": "torch.Buffer", "constant": "torch.Constant"}
"""The ops of tensors that a program holds, by their kinds."""
_INPUTS: Final = {
    "parameter": ("parameter", "parameter_name"),
    "buffer": ("buffer", "buffer_name"),
    "tensor_constant": ("constant", "tensor_constant_name"),
    "custom_obj": ("constant", "custom_obj_name"),
}
_WRITES: Final = {
    "buffer_mutation": ("buffer", "buffer_name"),
    "parameter_mutation": ("parameter", "parameter_name"),
    "user_input_mutation": ("input", "user_input_name"),
    "gradient_to_parameter": ("the gradient of parameter", "parameter_name"),
    "gradient_to_user_input": ("the gradient of input", "user_input_name"),
}


@dataclass(frozen=True, slots=True)
class State:
    """A tensor that a program holds."""

    kind: str
    name: str
    note: str = ""


@dataclass(slots=True)
class Meaning:
    """The meaning of inputs and outputs.

    Attributes:
        states: tensors of the program by the names of the inputs for them.
        results: the names of the results, "" for those without one.
        writes: sentences about what the program writes.
        constants: arguments that have one value only, as facts.
    """

    states: dict[str, State] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)


def meaning_of(module: GraphModule) -> Meaning:
    """The meaning of the inputs and outputs of a program."""
    signature = module.signature
    meaning = Meaning()
    meaning.states |= {key: State("parameter", name) for key, name in signature.inputs_to_parameters.items()}
    meaning.states |= {key: State("buffer", name) for key, name in signature.inputs_to_buffers.items()}
    meaning.writes += [f"The program writes buffer '{name}'." for name in signature.buffers_to_mutate.values()]
    for kind, value in [item for spec in signature.input_specs for item in spec.items()]:
        word, key = _INPUTS.get(kind, ("", ""))
        if kind == "constant_input" and isinstance(value, dict):
            constant = value.get("value")
            shown = next(iter(constant.values()), None) if isinstance(constant, dict) else constant
            meaning.constants[f"argument {value.get('name')}"] = str(None if "as_none" in (constant or ()) else shown)[:200]
        if word and isinstance(value, dict) and isinstance(value.get("arg"), dict):
            argument, name = value["arg"].get("name"), value.get(key)
            if isinstance(argument, str) and isinstance(name, str):
                meaning.states[argument] = State(word, name, "not saved with the state" if value.get("persistent") is False else "")
    root = next((entry.signature for entry in module.module_call_graph if not entry.fqn), None)
    _name_results(meaning, signature.output_specs, leaf_names(root.out_spec) if root is not None else [], len(module.graph.outputs))
    return meaning


def _name_results(meaning: Meaning, specs: list[dict[str, object]], leaves: list[str], count: int) -> None:
    is_own = ["user_output" in spec or "loss_output" in spec for spec in specs] or [True] * count
    if sum(is_own) != len(leaves):
        leaves = [""] * sum(is_own)
    own_names = iter(leaves)
    meaning.results = [next(own_names) if own else "" for own in is_own]
    for number, spec in enumerate(specs):
        for kind, value in spec.items():
            if kind in _WRITES and isinstance(value, dict):
                word, key = _WRITES[kind]
                meaning.results[number] = f"new {value.get(key)}"
                meaning.writes.append(f"The program writes {word} '{value.get(key)}'.")
