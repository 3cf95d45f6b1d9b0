"""Connectionist temporal classification: the likelihood of labels over all alignments, and decoding.

Graves et al., "Connectionist Temporal Classification" (2006). The last class is the blank.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

_NONE: Final = -np.inf


def log_softmax(x: Any) -> Any:
    """The logarithms of softmax along the last dimension."""
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def collapsed(labels: list[int]) -> list[int]:
    """The labels without direct repetitions."""
    return [label for i, label in enumerate(labels) if not i or label != labels[i - 1]]


def loss_and_gradient(logits: Any, labels: list[int], *, merge: bool) -> tuple[float, Any]:
    """The negative logarithm of the likelihood of labels, and its gradient by the logits.

    Args:
        logits: [time, classes].
        labels: without blanks.
        merge: equal labels in direct sequence are one label.

    Returns:
        The loss, infinite if no alignment has this length, and the gradient, then zeros.
    """
    log_y = log_softmax(logits.astype(np.float64))
    steps, classes = log_y.shape
    states = [classes - 1]
    for label in labels:
        states += [label, classes - 1]
    row = np.array(states)
    is_blank = row == classes - 1
    stays = np.ones(len(row), bool) if merge else is_blank
    skips = ~is_blank
    if merge:
        skips[2:] &= row[2:] != row[:-2]
    skips[:2] = False
    forward = _forward(log_y[:, row], stays, skips)
    # A skip into a state, read backwards, is a skip out of the state two further on.
    leaves = np.zeros(len(row), bool)
    leaves[:-2] = skips[2:]
    backward = _forward(log_y[::-1, row[::-1]], stays[::-1], leaves[::-1])[::-1, ::-1]
    total = np.logaddexp(forward[-1, -1], forward[-1, -2] if len(row) > 1 else _NONE)
    if total == _NONE:
        return np.inf, np.zeros((steps, classes))
    share = np.exp(forward + backward - log_y[:, row] - total)
    posterior = np.zeros((steps, classes))
    for state, label in enumerate(row):
        posterior[:, label] += share[:, state]
    return -float(total), np.exp(log_y) - posterior


def _forward(log_y: Any, stays: Any, skips: Any) -> Any:
    """The likelihoods of all beginnings: [time, states]."""
    steps, count = log_y.shape
    alpha = np.full((steps, count), _NONE)
    alpha[0, :2] = log_y[0, :2]
    for t in range(1, steps):
        before = alpha[t - 1]
        total = np.where(stays, before, _NONE)
        total[1:] = np.logaddexp(total[1:], before[:-1])
        total[2:] = np.where(skips[2:], np.logaddexp(total[2:], before[:-2]), total[2:])
        alpha[t] = total + log_y[t]
    return alpha


def greedy(logits: Any, blank: int, *, merge: bool) -> tuple[list[int], float]:
    """The labels of the best class at each time, and the negative sum of the best logits."""
    best = logits.argmax(-1).tolist() if len(logits) else []
    kept = [label for t, label in enumerate(best) if label != blank and not (merge and t and label == best[t - 1])]
    return kept, -float(logits.max(-1).sum(dtype=logits.dtype)) if len(logits) else 0.0


def beam_search(logits: Any, width: int, paths: int) -> list[tuple[list[int], float]]:
    """The most likely sequences of labels, with the logarithms of their likelihoods.

    Args:
        logits: [time, classes].
        width: the number of sequences to follow.
        paths: the number of sequences to return.
    """
    log_y = log_softmax(logits.astype(np.float64))
    blank = log_y.shape[1] - 1
    # For each sequence, the likelihoods of its alignments that end in a blank, and in its last label.
    beams: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, _NONE)}
    for scores in log_y.tolist():
        extended: dict[tuple[int, ...], list[float]] = {}
        for labels, (in_blank, in_label) in beams.items():
            total = float(np.logaddexp(in_blank, in_label))
            _add(extended, labels, 0, total + scores[blank])
            if labels:
                _add(extended, labels, 1, in_label + scores[labels[-1]])
            for label in range(blank):
                before = in_blank if labels and label == labels[-1] else total
                _add(extended, (*labels, label), 1, before + scores[label])
        best = sorted(extended.items(), key=lambda item: -float(np.logaddexp(item[1][0], item[1][1])))[:width]
        beams = {labels: (parts[0], parts[1]) for labels, parts in best}
    ranked = sorted(beams.items(), key=lambda item: -float(np.logaddexp(item[1][0], item[1][1])))[:paths]
    return [(list(labels), float(np.logaddexp(parts[0], parts[1]))) for labels, parts in ranked]


def _add(extended: dict[tuple[int, ...], list[float]], labels: tuple[int, ...], part: int, score: float) -> None:
    parts = extended.setdefault(labels, [_NONE, _NONE])
    parts[part] = float(np.logaddexp(parts[part], score))
