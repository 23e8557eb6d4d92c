"""The architecture: small packages and modules, precise names, visible imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MOST_MODULES = 20
MOST_LINES = 450
SHARED_LINES = 10
NO_CODE = re.compile(r"""#|from |import |["\w.()\[\]{}]*,?$""").match
SLEEPERS = {
    "cluster/test_client.py": {"sleep"},  # servers that answer late, or never
    "cluster/test_egress.py": {"prepare"},
    "cluster/test_informer.py": {"silent"},
    "cluster/test_leases.py": {"silence", "create"},
    "controllers/state/test_staleentries.py": {"silent"},
    "kubesandbox/admission/webhooks/test_calls.py": {"slow"},
    "kubesandbox/controllers/test_loop.py": {"work"},
    "offline/test_manifests.py": {"do_GET"},
    "registry/test_client.py": {"_silent"},
    "webhook/test_server.py": {"config_map", "drip"},
    "controllers/admission/test_followup.py": {"act"},  # the writer that waits for room shows nothing until it writes
    "controllers/reports/test_cluster.py": {"settle", "check"},  # a change arrives; a second of a timestamp passes
}
"""Functions of tests that sleep outside of a loop, each with its reason."""
NAMELESS = frozenset({"utils", "util", "common", "helpers", "helper", "misc", "internal"})


def modules() -> Iterator[Path]:
    """Every module of the product."""
    return (path for path in sorted(SOURCE.rglob("*.py")) if "__pycache__" not in path.parts)


def module_name(path: Path) -> str:
    """The dotted name under which a module is imported."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def rooms() -> Iterator[Path]:
    """Every package of the product."""
    return (path.parent for path in modules() if path.name == "__init__.py")


def test_a_room_holds_at_most_twenty_modules() -> None:
    """A larger package is split into subpackages."""
    sizes = {str(room.relative_to(SOURCE)): len(list(room.glob("*.py"))) - 1 for room in rooms()}
    assert {} == {room: size for room, size in sizes.items() if size > MOST_MODULES}


def test_a_module_has_at_most_450_lines() -> None:
    """A longer module holds more than one concept and is split."""
    sizes = {str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {} == {module: size for module, size in sizes.items() if size > MOST_LINES}


def test_no_module_is_named_for_nothing_in_particular() -> None:
    """Names such as `utils` or `helpers` are not allowed: code belongs to the concept that it serves."""
    assert [] == [str(path.relative_to(SOURCE)) for path in modules() if NAMELESS & {path.stem, *path.parent.parts}]


def test_every_room_has_a_charter() -> None:
    """The first line of a package's docstring states its purpose."""
    assert [] == [
        str(room.relative_to(SOURCE))
        for room in rooms()
        if not (ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or "").strip()
    ]


def test_no_two_places_share_ten_identical_lines() -> None:
    """Repeated code belongs in one place; lists of names and imports do not count."""
    seen: dict[tuple[str, ...], Path] = {}
    shared = set()
    for path in modules():
        lines = [line for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()) if not NO_CODE(line)]
        for run in zip(*(lines[start:] for start in range(SHARED_LINES)), strict=False):
            if run in seen:
                shared.add((str(seen[run].relative_to(SOURCE)), str(path.relative_to(SOURCE)), run[0]))
            seen[run] = path
    assert set() == shared


def test_no_import_hides_from_type_checker_and_contracts() -> None:
    """Type checker and contracts see import statements only; the public facade alone is a table of names."""
    hidden = [
        str(path.relative_to(SOURCE))
        for path in modules()
        if "import_module(" in path.read_text(encoding="utf-8") and path != SOURCE / "pyverno" / "__init__.py"
    ]
    assert [] == hidden


def imports_that_run(path: Path, known: Collection[str]) -> Iterator[str]:
    """The modules of the product that a module imports at any time; imports for types alone do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(below)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for below in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{each.name}" for each in node.names]
            yield from (name if name in known else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def test_no_import_goes_round_in_a_circle() -> None:
    """Each module can be read after those that it uses; an import inside of a function counts as well."""
    known = {module_name(path): path for path in modules()}
    uses = {
        name: {each for each in imports_that_run(path, known) if each in known and each != name}
        for name, path in known.items()
    }
    while free := {name for name, used in uses.items() if not used}:
        uses = {name: used - free for name, used in uses.items() if name not in free}
    assert {} == uses


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_the_pages_name_every_top_level_room(page: str) -> None:
    """A newcomer finds every room on the map."""
    text = (ROOT / page).read_text(encoding="utf-8")
    tops = sorted(path.name for path in (SOURCE / "pyverno").iterdir() if (path / "__init__.py").exists())
    assert [] == [name for name in (*tops, "kubesandbox") if name not in text]


def test_no_test_sleeps_to_show_that_nothing_happens() -> None:
    """A sleep stands in a loop that polls; otherwise a later event shows that the earlier one had no effect."""
    found: dict[str, set[str]] = {}
    unit = ROOT / "tests" / "unit"
    for path in sorted(unit.rglob("*.py")):
        names = set(_sleepers(ast.parse(path.read_text(encoding="utf-8")), "", in_loop=False))
        if names:
            found[path.relative_to(unit).as_posix()] = names
    assert SLEEPERS == found


def _sleepers(node: ast.AST, function: str, *, in_loop: bool) -> Iterator[str]:
    """Return the functions that sleep for more than a moment outside of a loop."""
    for child in ast.iter_child_nodes(node):
        inside, name = in_loop or isinstance(child, ast.While | ast.For), function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inside, name = False, child.name
        call = ast.unparse(child) if isinstance(child, ast.Call) and not inside else ""
        if call.startswith(("asyncio.sleep(", "time.sleep(")) and not call.endswith("(0)"):
            yield name
        yield from _sleepers(child, name, in_loop=inside)
