"""Functions in views: the form of their attrs, definitions as diagrams, navigation between functions."""

from widgets.function.definition_scene import Definition
from widgets.function.form import AttrForm
from widgets.function.session import FunctionSession, opened_from, subject_of
from widgets.function.subject import GradientSubject, Subject, Use, first_uses, use_of

__all__ = [
    "AttrForm",
    "Definition",
    "FunctionSession",
    "GradientSubject",
    "Subject",
    "Use",
    "first_uses",
    "opened_from",
    "subject_of",
    "use_of",
]
