"""Python files of a plugin, imported under private names: no other import finds them, or is replaced by them."""

import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location, spec_from_loader
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, Final

from tiny_harness.errors import RegistryError
from tiny_harness.plugins.files import PluginFolder

_PREFIX: Final = "_tiny_harness_plugin_"
_numbers: Final = itertools.count(1)


class PluginCode:
    """The Python files below one folder of a plugin. They may import each other relatively (`from . import other`)."""

    def __init__(self, plugin: str, folder: PluginFolder, below: str) -> None:
        self._folder = folder
        self._below = below
        self._package = f"{_PREFIX}{re.sub(r'[^a-z0-9]', '_', plugin)}_{next(_numbers)}"
        self._failures: dict[str, str] = {}

    def function(self, file: str, name: str) -> Callable[..., Any]:
        """Import a file, once, and take a function of one argument from it.

        Raises:
            RegistryError: There is no such file or function, or its import fails.
        """
        module = self._module(file)
        function = getattr(module, name, None)
        if function is None:
            raise RegistryError("function", name, f"is not in {file}")
        if not callable(function):
            raise RegistryError("function", name, f"in {file} cannot be called")
        try:
            inspect.signature(function).bind(object())
        except (TypeError, ValueError) as error:
            raise RegistryError("function", name, f"in {file} must take one argument, the context") from error
        return function

    def _module(self, file: str) -> ModuleType:
        if self._folder.find(f"{self._below}/{file}") is None:
            raise RegistryError("file", file, f"is not in {self._below}/")
        if file in self._failures:
            raise RegistryError("file", file, self._failures[file])
        _FINDER.packages[self._package] = (self._folder, self._below)
        if _FINDER not in sys.meta_path:
            sys.meta_path.append(_FINDER)
        name = ".".join((self._package, *PurePosixPath(file).with_suffix("").parts))
        try:
            return importlib.import_module(name)
        except (Exception, SystemExit) as error:  # somebody else's code: any is its failure
            self._failures[file] = f"cannot be imported: {type(error).__name__}: {error}"[:300]
            raise RegistryError("file", file, self._failures[file]) from error


class _SourceLoader(SourceFileLoader):
    """Compiles the file that is there, and leaves nothing beside it."""

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


class _Finder(MetaPathFinder):
    """Finds the modules of plugins, inside their folders only."""

    def __init__(self) -> None:
        self.packages: dict[str, tuple[PluginFolder, str]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of a plugin; `None` for anybody else's."""
        package, *inner = fullname.split(".")
        if package not in self.packages:
            return None
        folder, below = self.packages[package]
        stem = "/".join((below, *inner))
        try:
            if inner and (file := folder.find(f"{stem}.py")):
                return _spec(fullname, file, None)
            if inner and (file := folder.find(f"{stem}/__init__.py")):
                return _spec(fullname, file, [])
            is_folder = folder.find(stem, kind="folder") is not None
        except RegistryError as error:
            raise ImportError(str(error), name=fullname) from error
        return spec_from_loader(fullname, None, is_package=True) if is_folder else None


def _spec(fullname: str, file: Path, search: list[str] | None) -> ModuleSpec | None:
    # An empty search path: nothing but the finder below can find what is inside.
    loader = _SourceLoader(fullname, str(file))
    return spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=search)


_FINDER: Final = _Finder()
