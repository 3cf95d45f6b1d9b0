"""`tf.train.init_from_checkpoint`: variables that start from the values in a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from graphcore.checkpoints import CheckpointReader
from graphcore.errors import InvalidArgumentError, NotFoundError
from graphcore.graph import Node, get_default_graph
from graphcore.shapes import Shape
from graphcore.tf1.train.saving.checkpoint_states import latest_checkpoint, load_checkpoint
from graphcore.tf1.variables.choice import VariableChoice
from graphcore.tf1.variables.listing import all_variables
from graphcore.tf1.variables.variables import Variable


def init_from_checkpoint(ckpt_dir_or_file: str | os.PathLike[str], assignment_map: Mapping[str, Any]) -> None:
    """Let the initializers of variables read their values from a checkpoint. It comes before the node that runs all initializers.

    Args:
        ckpt_dir_or_file: the checkpoint, or a folder with some.
        assignment_map: by name in the checkpoint, a variable or its name; or by a prefix that ends with "/", the prefix of variables.

    Raises:
        NotFoundError: there is no such checkpoint, no such value in it, or no such variable.
        InvalidArgumentError: a value has another shape than its variable.
    """
    reader = load_checkpoint(ckpt_dir_or_file)
    path = os.fspath(ckpt_dir_or_file)
    path = (latest_checkpoint(path) if os.path.isdir(path) else None) or path  # noqa: PTH112 - a prefix of files, not a path
    names, variables = _pairs(reader, assignment_map)
    graph = get_default_graph()
    chosen = VariableChoice(graph, variables)

    def build() -> list[Node]:
        nodes = []
        for name, variable in zip(names, chosen.now(), strict=True):
            with graph.name_scope(f"{variable.op.name}/checkpoint_initializer"), graph.device(variable.device or None):
                inputs = [path, [name], [""]]
                (value,) = graph.apply_op("RestoreV2", inputs, {"dtypes": [variable.dtype]}, None).outputs
                variable.start_from(value)
                nodes.append(variable.initializer)
        return nodes

    def made_now() -> list[int]:
        return [id(variable.op) for variable in chosen.now()]

    graph.derivations.derive(f"the initializers from '{path}'", build, fingerprint=made_now)


def _pairs(reader: CheckpointReader, assignment_map: Mapping[str, Any]) -> tuple[list[str], list[Variable]]:
    """The names in the checkpoint, and the variables."""
    shapes = reader.get_variable_to_shape_map()
    by_name = {variable.op.name: variable for variable in all_variables()}
    pairs: list[tuple[str, Variable]] = []
    for there, here in assignment_map.items():
        if isinstance(here, Variable):
            pairs.append((there, here))
        elif isinstance(here, str) and there.endswith("/"):
            prefix = "" if here == "/" else here.rstrip("/") + "/"
            start = "" if there == "/" else there
            pairs += [(start + name.removeprefix(prefix), variable) for name, variable in by_name.items() if name.startswith(prefix)]
        elif isinstance(here, str):
            if here not in by_name:
                raise NotFoundError(f"assignment_map: there is no variable '{here}' for '{there}'")
            pairs.append((there, by_name[here]))
        else:
            raise InvalidArgumentError(f"assignment_map: required a variable or a name for '{there}', got {here!r}")
    for name, variable in pairs:
        if name not in shapes:
            raise NotFoundError(f"The checkpoint holds no '{name}' for variable '{variable.op.name}'")
        if not variable.shape.is_compatible_with(Shape(shapes[name])):
            raise InvalidArgumentError.at(
                variable.op,
                f"'{name}' of the checkpoint has the shape {Shape(shapes[name])}, variable '{variable.op.name}' {variable.shape}",
            )
    return [name for name, _ in pairs], [variable for _, variable in pairs]
