"""S4: the source itself. No text becomes code, no pickle, no shell; one audited exception each, named here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyverno

ROOT = Path(pyverno.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))

FORBIDDEN_NAMES = {"exec", "eval", "compile", "__import__", "input", "breakpoint"}
ALLOWED_NAMES = {("lang/codegen.py", "compile")}

FORBIDDEN_MODULES = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "code",
    "telnetlib",
    "xmlrpc",
    "pty",
}
PROCESS_MODULES = {
    # git, helm, kustomize and kubectl, within bounds
    "subprocess": {"programs.py"},
    "multiprocessing": {"cli/apply/judge.py", "cli/migrate/run.py", "cli/test/run.py"},
    # one call with two numbers
    "ctypes": {"controllers/runtime/mallocarenas.py"},
}
PROCESS_CALLS = {
    "asyncio.create_subprocess_exec": {
        "cli/sandbox/run.py",
        "cluster/credentials.py",
        "controllers/runtime/processgroup/processes.py",
        "registry/credentialhelpers.py",
        "ui/playground/workers.py",
    },
    "asyncio.create_subprocess_shell": set(),
    # programs are in absolute folders of the search path
    "shutil.which": {"programs.py"},
    "pyverno.programs.run_program": {"offline/git/process.py", "offline/adoption/process.py"},
    # the one for clones of servers, the other for the judged tree
    "pyverno.offline.git.process.run_git": {"offline/git/clone.py", "offline/git/repository.py"},
}
"""The doors to other programs, each with a limit on what starts it."""
STARTING = re.compile(
    r"os\.(system|popen|startfile|fork|forkpty|exec[lv]\w*|spawn[lv]\w*|posix_spawnp?)|.*\.subprocess_(exec|shell)"
)
FORBIDDEN_CALLS = {
    "yaml.load",
    "yaml.load_all",
    "yaml.unsafe_load",
    "yaml.full_load",
    "tempfile.mktemp",
    "sys.setrecursionlimit",
    "copy.deepcopy",
    "fnmatch.fnmatch",
    "fnmatch.translate",
}
IMPORT_MACHINERY = {"sys.modules", "sys.meta_path", "sys.path_hooks", "module_from_spec", "LazyLoader", "ModuleType"}
"""Native code takes what is in `sys.modules` for whole modules: a stand-in there ends the process."""


def imported(tree: ast.AST) -> dict[str, str]:
    """Map each name that an import statement binds to its full name: `deepcopy` to `copy.deepcopy`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return found


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call with the dotted name of what is called, whatever name an import gave it."""
    names = imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            first, dot, rest = ast.unparse(node.func).partition(".")
            yield names.get(first, first).removeprefix("builtins.") + dot + rest, node


def problems(name: str, source: str) -> list[str]:
    """Return the forbidden calls and imports of a source file."""
    tree = ast.parse(source)
    found = []
    for called, node in calls(tree):
        if called in FORBIDDEN_NAMES and (name, called) not in ALLOWED_NAMES:
            found.append(f"{name}:{node.lineno} calls {called}")
        if called in FORBIDDEN_CALLS or STARTING.fullmatch(called) or name not in PROCESS_CALLS.get(called, {name}):
            found.append(f"{name}:{node.lineno} calls {called}")
        if any(keyword.arg == "shell" for keyword in node.keywords):
            found.append(f"{name}:{node.lineno} uses a shell")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in IMPORT_MACHINERY:
            found.append(f"{name}:{node.lineno} uses {ast.unparse(node)}")
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        for module in modules:
            top = module.partition(".")[0]
            if IMPORT_MACHINERY & {alias.name for alias in node.names}:
                found.append(f"{name}:{node.lineno} changes how modules are imported")
            if top in FORBIDDEN_MODULES or name not in PROCESS_MODULES.get(top, {name}):
                found.append(f"{name}:{node.lineno} imports {module}")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_runs_no_text(path: Path) -> None:
    """No exec, eval, compile, pickle, yaml.load, shell, process or stand-in for a module but in places named here."""
    assert [] == problems(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "exec(text)",
        "import pickle",
        "from subprocess import run",
        "import os\nos.system('x')",
        "import os\nos.execvpe('x', [], {})",
        "from os import posix_spawn\nposix_spawn('x', [], {})",
        "import os as o\no.spawnlp(0, 'x')",
        "loop.subprocess_exec(factory, 'x')",
        "import shutil\nshutil.which('git')",
        "from pyverno.programs import run_program as r\nr(['git'])",
        "from pyverno.offline.git.process import run_git\nrun_git(['status'])",
        "run(['a'], shell=True)",
        "yaml.load(text)",
        "import multiprocessing.pool",
        "compile(a, b, c)",
        "asyncio.create_subprocess_exec('a')",
        "import sys\nsys.modules['uuid'] = object()",
        "from importlib.util import module_from_spec",
        "from importlib.util import LazyLoader",
        "from copy import deepcopy\ndeepcopy(value)",
        "from copy import deepcopy as twin\ntwin(value)",
        "import copy as c\nc.deepcopy(value)",
        "from os import system\nsystem('x')",
        "from asyncio import create_subprocess_exec as start\nstart('a')",
        "from builtins import eval as read\nread('1')",
    ],
)
def test_the_lint_finds_what_it_looks_for(source: str) -> None:
    """The check itself: planted violations are found, harmless code is not."""
    assert 1 == len(problems("engine/x.py", source))
    assert [] == problems("engine/x.py", "re.compile('a')\nimport json\nvalue.eval()\n")


def test_generated_code_is_made_in_one_place() -> None:
    """There is one compile in the product, the one that is allowed, and no exec at all.

    Register: CVE-2025-1974.
    """
    sites = [
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        for called, _ in calls(ast.parse(path.read_text(encoding="utf-8")))
        if called in {"compile", "exec"}
    ]
    assert ["lang/codegen.py"] == sites


HOSTILE = [
    "'); import os; os.system('true') #",
    '"""',
    "\\",
    "\n",
    "{",
    "}",
    "{0}",
    "%s",
    "__class__",
    "\u2028",
    "a'b\"c",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_generated_checks_treat_every_text_as_a_constant(text: str) -> None:
    """Keys and values of a pattern never become code: the pass-check agrees with the exact pattern."""
    from pyverno.lang.pattern.validate import compile_pattern

    pattern = compile_pattern({"metadata": {"labels": {text: text}}})
    for label in (text, "other"):
        value = {"metadata": {"labels": {text: label}}}
        if pattern.passes is not None and pattern.passes(value) is True:
            assert "pass" == pattern.match(value).status.value
