"""Completion in strings and of the words of magics."""

from kernelext.completion.completion import Completion

__all__ = ["Completion"]
