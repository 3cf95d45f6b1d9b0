"""HLO modules as text, as XLA writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from graphcore.errors import InvalidArgumentError
from graphcore.frontends.mlir_reader.hlo import HloReader
from graphcore.frontends.reading import source_bytes

if TYPE_CHECKING:
    from graphcore.frontends.foreign import ForeignGraph
    from graphcore.frontends.frontend import Source

KIND: Final = "HLO module as text (HloModule ...; jax.stages.Compiled)"
_HEAD: Final = re.compile(rb"\s*(//[^\n]*\n\s*)*HloModule\s")


def sniff(source: Source) -> bool:
    """True iff the source is the text of an HLO module, or a compiled program of JAX."""
    if source.path is not None:
        return not source.members and _HEAD.match(source.head) is not None
    kind = type(source.value)
    if isinstance(source.value, str):
        return source.value.lstrip().startswith("HloModule ")
    return kind.__name__ == "Compiled" and kind.__module__.partition(".")[0] == "jax"


def read(source: Source) -> ForeignGraph:
    """Read the text of an HLO module.

    Raises:
        GraphError: it is damaged.
    """
    value: Any = source.value
    if source.path is not None:
        text = source_bytes(source).decode(errors="replace")
    elif isinstance(value, str):
        text = value
    else:
        module_text = value.as_text()
        if not isinstance(module_text, str):
            raise InvalidArgumentError("The compiled program gives no text")
        text = module_text
    return HloReader(text).read()
