"""The examples of docstrings: what they show is what the code returns."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.unit.test_architecture import SOURCE, module_name, modules

# those of JMESPath's functions are expressions, and run in the tests of the functions
MODULES = [
    module_name(path)
    for path in modules()
    if ">>> " in path.read_text(encoding="utf-8")
    and not path.is_relative_to(SOURCE / "pyverno" / "lang" / "jmespath" / "functions")
]
OPTIONS = doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name: str) -> None:
    """An example that does not run misleads its reader more than none."""
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    for example in doctest.DocTestFinder().find(importlib.import_module(name), name):
        runner.run(example, out=failures.append)
    assert "" == "".join(failures)


def test_there_are_examples() -> None:
    """The test above finds them."""
    assert len(MODULES) > 300
