"""`tf.contrib.layers`: vectors of symbols."""

from __future__ import annotations

from typing import Any

from graphcore.brief import brief
from graphcore.errors import InvalidArgumentError
from graphcore.tf1 import nn
from graphcore.tf1.contrib.framework import model_variable
from graphcore.tf1.variable_scopes.opening import variable_scope


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The vectors of sequences of symbols. ids: [batch, length], ints -> y: [batch, length, embed_dim].

    Args:
        ids: the numbers of the symbols.
        vocab_size, embed_dim: the number of symbols and the size of their vectors; required unless `reuse`.
        unique: without effect on the result.
        initializer, regularizer, trainable: those of the variable `embeddings`.
        scope: the variable scope, "EmbedSequence" by default.
        reuse: True to take the variable of the scope.

    Raises:
        InvalidArgumentError: a size is missing.
    """
    del unique
    if not (reuse or (vocab_size and embed_dim)):
        raise InvalidArgumentError(
            f"Must specify vocab size and embedding dimension when not reusing. Got vocab_size={brief(vocab_size)} and embed_dim={brief(embed_dim)}"
        )
    with variable_scope(scope, "EmbedSequence", reuse=reuse):
        shape = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        embeddings = model_variable("embeddings", shape, initializer=initializer, regularizer=regularizer, trainable=trainable)
        return nn.embedding_lookup(embeddings, ids)
