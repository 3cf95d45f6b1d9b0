"""Small files of JAX that the tests read; this needs JAX."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp

FOLDER = Path(__file__).parents[2] / "data" / "frontends"


def layer(carry: Any, weight: Any) -> Any:
    with jax.named_scope("layer"):
        return jnp.tanh(carry @ weight), carry.sum()


@jax.jit  # type: ignore[untyped-decorator]  # jax is not there
def network(x: Any, weights: Any, n: Any) -> Any:
    with jax.named_scope("encoder"):
        y, sums = jax.lax.scan(layer, x, weights)
    y = jax.lax.cond(n > 0, lambda a: a + 1, lambda a: a * 2, y)
    y = jax.lax.while_loop(lambda state: state[1] < 3, lambda state: (state[0] * 2, state[1] + 1), (y, 0))[0]
    return jax.nn.softmax(jax.nn.relu(y)), sums


if __name__ == "__main__":
    arguments = (jnp.ones((2, 4)), jnp.ones((3, 4, 4)), 1)
    stream = io.BytesIO()
    network.lower(*arguments).compiler_ir().operation.write_bytecode(stream)
    (FOLDER / "loops.mlirbc").write_bytes(stream.getvalue())
    shapes = [jax.ShapeDtypeStruct(jnp.shape(each), jnp.asarray(each).dtype) for each in arguments]
    (FOLDER / "loops_portable.mlirbc").write_bytes(jax.export.export(network)(*shapes).mlir_module_serialized)
