"""The names of TensorFlow 1: namespaces are loaded on demand; errors say what to use for the rest."""

from __future__ import annotations

import difflib
import importlib.machinery
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import Any, Final, NoReturn

from graphcore import api
from graphcore.api import ops
from graphcore.errors import UnknownNameError
from graphcore.notebook_names import written
from graphcore.support.safe_import import import_whole
from graphcore.tf1.names.internal import INTERNAL
from graphcore.tf1.names.table import FALLBACKS, NAMESPACES, PLACES

_PACKAGE: Final = __name__.partition(".")[0]
_ALIKE: Final = 0.75
"""The least likeness of two names, from 0 to 1, for one to be a misspelling of the other."""


def attribute_of_package(name: str) -> Any:
    """A name of the top level: the package's `__getattr__`.

    Raises:
        AttributeError: there is none; the text says what it was in TensorFlow and what to use, or what it may be a misspelling of.
    """
    return _attribute("", name)


def names_of_package() -> list[str]:
    """The names of the top level that users of notebooks write: the package's `__dir__`. Others resolve as well."""
    return written(_names_in("", ()), vars(sys.modules[_PACKAGE]), vars(api)["__all__"])


def namespace(path: str) -> ModuleType:
    """The module of a namespace, such as `contrib.layers`."""
    full = NAMESPACES[path]
    if not full:
        full = _module_name(path)
        if full not in sys.modules:
            namespace_module = ModuleType(full, f"TensorFlow 1's tf.{path}.")
            namespace_module.__path__ = []  # so that its parts can be imported as modules
            sys.modules[full] = namespace_module
    module = import_whole(full)
    if "__getattr__" not in vars(module):
        shortest = min(
            [alias for alias, place in NAMESPACES.items() if place == full], key=len, default=path
        )  # of several names of one module
        public = vars(module).get("__all__", ())
        vars(module)["__getattr__"] = partial(_attribute, shortest)
        vars(module)["__dir__"] = partial(_names_in, shortest, public)
    return module


def _attribute(path: str, name: str) -> Any:
    full = f"{path}.{name}" if path else name
    if name.startswith("_"):
        raise AttributeError(f"module '{_module_name(path)}' has no attribute {name!r}", name=name)
    if full in NAMESPACES:
        attribute: Any = namespace(full)
    else:
        attribute = _placed(full)
        if attribute is None:
            attribute = _from_elsewhere(path, name)
        if attribute is None:
            _raise_missing(path, name)
    vars(_module(path))[name] = attribute  # found without this function from now on
    return attribute


def _placed(full: str) -> Any:
    """A name of the table, None if it is not there, or is that of an op that is not registered."""
    module, attribute = PLACES.get(full, ("", ""))
    if not module or (module == ops.__name__ and attribute not in dir(ops)):
        return None
    return getattr(import_whole(module), attribute)


def _from_elsewhere(path: str, name: str) -> Any:
    """A name that this namespace shares with others in TensorFlow, None if it does not."""
    if path not in FALLBACKS or (path not in INTERNAL and name not in tensorflow_names(path)):
        return None
    for other in FALLBACKS[path]:
        if other and other not in NAMESPACES:
            continue
        full = f"{other}.{name}" if other else name
        attribute = vars(_module(other)).get(name)
        if attribute is None:
            attribute = _placed(full)
        if attribute is not None:
            return attribute
    return None


def _module_name(path: str) -> str:
    return f"{_PACKAGE}.{path}" if path else _PACKAGE


def _module(path: str) -> ModuleType:
    return namespace(path) if path else sys.modules[_PACKAGE]


def _names_in(path: str, own: Iterable[str]) -> list[str]:
    start = f"{path}." if path else ""
    registered = frozenset(dir(ops))
    present = [full for full, (module, name) in PLACES.items() if module != ops.__name__ or name in registered]
    below = [full.removeprefix(start) for full in (*NAMESPACES, *present) if full.startswith(start)]
    shared = [name for name in tensorflow_names(path) if _from_elsewhere(path, name) is not None] if path in FALLBACKS else []
    return sorted({*own, *shared, *[name for name in below if "." not in name]})


def _raise_missing(path: str, name: str) -> NoReturn:
    from graphcore.tf1.names.absent import what_to_use  # noqa: PLC0415 - needed for errors only

    full = f"{path}.{name}" if path else name
    text = f"module '{_module_name(path)}' has no attribute {name!r}"
    advice = what_to_use(full)
    if advice:
        raise UnknownNameError(f"{text}: {advice}")
    names = _names_in(path, getattr(_module(path), "__all__", ()))
    if not path:
        ops.raise_missing(name, names)
    near = difflib.get_close_matches(name, names, 1, _ALIKE)
    raise UnknownNameError(text + (f": did you mean gc.{path}.{near[0]}?" if near else f"; dir(gc.{path}) lists what is there"))


def tensorflow_names(path: str) -> list[str]:
    """The names of a namespace in TensorFlow 1.15."""
    from graphcore.tf1.names.tensorflow_names import NAMES  # noqa: PLC0415 - a large table, seldom needed

    return NAMES.get(path, "").split()


class _Finder(MetaPathFinder):
    """Makes `import graphcore.nn` and `from graphcore.contrib import rnn` find the namespaces."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the protocol of finders
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol of finders
    ) -> importlib.machinery.ModuleSpec | None:
        """The namespace called `fullname`, None if the name is nothing of TensorFlow.

        Raises:
            ModuleNotFoundError: it is a module of TensorFlow that is not here.
        """
        if not fullname.startswith(f"{_PACKAGE}."):
            return None
        name = fullname.removeprefix(f"{_PACKAGE}.")
        if name in NAMESPACES:
            return importlib.machinery.ModuleSpec(fullname, _Loader(name), is_package=True)
        from graphcore.tf1.names.absent import what_to_use  # noqa: PLC0415 - needed for errors only

        advice = what_to_use(name)
        if advice:
            raise ModuleNotFoundError(f"No module named '{_PACKAGE}.{name}': {advice}", name=f"tensorflow.{name}")
        return None


class _Loader(Loader):
    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:  # noqa: ARG002 - the protocol of loaders
        module = namespace(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has replaced it by that of the alias


sys.meta_path.append(_Finder())
