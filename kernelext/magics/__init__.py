"""Magics beside `%graph`: each returns an object that displays itself, as text in a terminal too."""

from kernelext.magics.asking import QUESTIONS
from kernelext.magics.magics import FEEDING, NAMING, Magics

__all__ = ["FEEDING", "NAMING", "QUESTIONS", "Magics"]
