"""Modules that wait until something in them is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pyverno.cli.lazily import LATER


def _python(code: str) -> str:
    head = "import sys\nfrom pyverno.cli.lazily import load_later\n"
    ran = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, check=True)
    return ran.stdout


def test_an_import_loads_nothing_and_a_use_loads_all() -> None:
    """Any number of imports is free; the first name that is used loads the module, for everybody."""
    code = (
        "load_later(['difflib'])\n"
        "import difflib\nimport difflib as again\n"
        "print('heapq' in sys.modules, 'unified_diff' in vars(difflib))\n"
        "from difflib import unified_diff\n"
        "print('heapq' in sys.modules, unified_diff is again.unified_diff, type(difflib).__name__)\n"
    )
    assert "False False\nTrue True module\n" == _python(code)


@pytest.mark.parametrize("name", LATER)
def test_every_module_works_when_it_is_loaded_late(name: str) -> None:
    """All its public names are there, those of packages too, as when it is loaded at once."""
    shown = f"import {name}\nprint(sorted(n for n in dir({name}) if not n.startswith('_')))\n"
    use = f"load_later()\nimport {name}\nassert not hasattr({name}, 'no_such_name')\n"
    assert _python(shown) == _python(use + shown)


def test_what_is_not_installed_fails_where_it_is_imported() -> None:
    """The name of the module is in the error, as ever."""
    code = (
        "load_later(['no_such_module'])\n"
        "try:\n    import no_such_module\nexcept ModuleNotFoundError as error:\n    print(error.name)\n"
    )
    assert "no_such_module\n" == _python(code)


def test_what_is_loaded_already_stays() -> None:
    """The module object is the same."""
    assert "True\n" == _python("import json\nbefore = json\nload_later(['json'])\nimport json\nprint(json is before)\n")
