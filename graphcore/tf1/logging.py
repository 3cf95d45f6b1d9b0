"""`tf.logging`: messages of a program, by Python's logging under the name "graphcore"."""

from __future__ import annotations

import logging as _logging
from typing import Any, Final

__all__ = [
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "debug",
    "error",
    "fatal",
    "get_verbosity",
    "info",
    "log",
    "log_every_n",
    "log_first_n",
    "log_if",
    "set_verbosity",
    "vlog",
    "warn",
    "warning",
]

DEBUG: Final = _logging.DEBUG
INFO: Final = _logging.INFO
WARN: Final = _logging.WARNING
ERROR: Final = _logging.ERROR
FATAL: Final = _logging.CRITICAL
_logger: Final = _logging.getLogger("graphcore")
_counts: Final[dict[str, int]] = {}


def _ready() -> _logging.Logger:
    """The logger, which writes to standard error unless the program has set up logging."""
    if not _logger.handlers and not _logging.getLogger().handlers:
        handler = _logging.StreamHandler()
        handler.setFormatter(_logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
        _logger.addHandler(handler)
        _logger.propagate = False
    return _logger


def log(level: int, msg: object, *args: Any, **kwargs: Any) -> None:
    """Write `msg % args` if messages of `level` are shown."""
    _ready().log(level, msg, *args, **kwargs)


def debug(msg: object, *args: Any, **kwargs: Any) -> None:
    """Write a message that helps to find faults."""
    log(DEBUG, msg, *args, **kwargs)


def info(msg: object, *args: Any, **kwargs: Any) -> None:
    """Write a message about the course of the program."""
    log(INFO, msg, *args, **kwargs)


def warning(msg: object, *args: Any, **kwargs: Any) -> None:
    """Write a warning."""
    log(WARN, msg, *args, **kwargs)


warn = warning


def error(msg: object, *args: Any, **kwargs: Any) -> None:
    """Write an error."""
    log(ERROR, msg, *args, **kwargs)


def fatal(msg: object, *args: Any, **kwargs: Any) -> None:
    """Write an error that ends the program; it does not end it."""
    log(FATAL, msg, *args, **kwargs)


def vlog(level: int, msg: object, *args: Any, **kwargs: Any) -> None:
    """Write `msg % args` if messages of `level` are shown."""
    log(level, msg, *args, **kwargs)


def log_if(level: int, msg: object, condition: object, *args: Any) -> None:
    """Write a message if `condition` holds."""
    if condition:
        log(level, msg, *args)


def log_every_n(level: int, msg: object, n: int, *args: Any) -> None:
    """Write the first, the `n + 1`-th, ... call with this message."""
    log_if(level, msg, not _count(msg) % n, *args)


def log_first_n(level: int, msg: object, n: int, *args: Any) -> None:
    """Write the first `n` calls with this message."""
    log_if(level, msg, _count(msg) < n, *args)


def _count(msg: object) -> int:
    """The number of earlier calls with the message."""
    before = _counts.get(str(msg), 0)
    _counts[str(msg)] = before + 1
    return before


def set_verbosity(v: int) -> None:
    """Show the messages of level `v`, such as `gc.logging.INFO`, and those above."""
    _ready().setLevel(v)


def get_verbosity() -> int:
    """The level of the messages that are shown."""
    return _ready().getEffectiveLevel()
