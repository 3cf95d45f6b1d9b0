"""The variables that the replicas of a model make: shared ones, and copies."""

from __future__ import annotations

import re

from graphcore.errors import InvalidArgumentError
from graphcore.tf1.framework import control_dependencies, device, name_scope
from graphcore.tf1.variables.variables import Variable


def mirror(own_variables: list[list[Variable]]) -> None:
    """Let the copies of variables begin with the values of the first replica.

    Args:
        own_variables: the variables that each replica has made.

    Raises:
        InvalidArgumentError: they differ.
    """
    expected = [inner_name(variable, 0) for variable in own_variables[0]]
    for number, copies in enumerate(own_variables[1:], 1):
        names = [inner_name(variable, number) for variable in copies]
        if names != expected:
            raise InvalidArgumentError(
                f"step: required the same variables in each replica; the first replica made {', '.join(expected) or 'none'}, and replica {number} "
                f"made {', '.join(names) or 'none'}"
            ).advise(
                "Make variables that all replicas share, such as the number of steps, before the call.",
                required=f"the variables of the first replica: {', '.join(expected) or 'none'}",
                came=", ".join(names) or "none",
            )
        for first, copy in zip(own_variables[0], copies, strict=True):
            _begin_alike(first, copy)


def _begin_alike(first: Variable, copy: Variable) -> None:
    """Initialise a copy with the value of `first`, initialised in the same run. Random values are drawn once."""
    with name_scope(f"{copy.op.name}/"):
        with control_dependencies([first.initializer]), device(first.device or None):
            value = first.read_value()
        with device(copy.device or None):
            copy.start_from(value)


def inner_name(variable: Variable, number: int) -> str:
    """The name of a copy without the scopes of its replica, which the average of a variable has twice."""
    own = re.compile(rf"replica_{number}(_\d+)?")
    return "/".join([part for part in variable.op.name.split("/") if not own.fullmatch(part)])


def require_shared(own_variables: list[list[Variable]]) -> None:
    """Require that only the first replica makes variables, which the others share.

    Args:
        own_variables: the variables that each replica has made.

    Raises:
        InvalidArgumentError: another one has made some.
    """
    for number, variables in enumerate(own_variables[1:], 1):
        if variables:
            name, first = variables[0].op.name, [variable.op.name for variable in own_variables[0]]
            raise InvalidArgumentError.at(
                variables[0].op,
                f"step: required variables that all replicas share; replica {number} made '{name}', and the first replica made "
                f"{', '.join(repr(variable) for variable in first) or 'none'}",
            ).advise(
                "Make variables in the step by `gc.get_variable` or layers, or before the call; with variables='mirrored' each replica has its own.",
                required="the same variables in each replica",
                came=f"'{name}', made by replica {number}",
            )
