"""The architecture: small packages and modules, precise names, visible imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MOST_LINES = 700
SHARED_LINES = 10
NO_CODE = re.compile(r"""#|from |import |["\w.()\[\]{}]*,?$""").match
CLOCK = re.compile(r".*(monotonic|perf_counter|\btime)\(\) - \w+ <").match
WAITING = re.compile(r"timeout|sleep\(|\bwait(_for)?\(|join\(\d|result\(\d|monotonic|perf_counter|time\.time\(").search
SLEEPERS = {
    "cluster/test_informer.py": {"silent"},  # servers that answer late, or never
    "cluster/test_leases.py": {"create"},
    "controllers/state/test_staleentries.py": {"silent"},
    "kubesandbox/admission/webhooks/test_calls.py": {"slow"},
    "kubesandbox/controllers/test_loop.py": {"work"},
    "registry/test_client.py": {"_silent"},
    "ui/server/test_serving.py": {"scene"},  # a client that does not read, while the server waits
    "controllers/admission/test_followup.py": {"act"},  # the writer that waits for room shows nothing until it writes
    "controllers/reports/test_cluster.py": {"check"},  # a second of a timestamp passes
}
"""Functions of tests that sleep outside of a loop, each with its reason."""
PATIENCE = 30.0
WAITS = {
    "unit/cluster/test_egress.py": {"work"},  # the deadline of a review, which passes
    "unit/webhook/test_workers.py": {"run"},
    "unit/kubesandbox/storage/test_watching.py": {"work"},  # a watch that has nothing more to tell
    "e2e/admission/balancer.py": {"_probe"},  # a probe that is late, as the kubelet counts it
    "e2e/admission/probe.py": {"main"},  # the pause between two probes
}
"""Functions of tests that wait for less than `PATIENCE` seconds, because the time may run out without a failure."""
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


def test_a_module_has_at_most_700_lines() -> None:
    """A longer module holds more than one concept and is split; no other size is limited."""
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


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node, except those that are for type checkers alone."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, part, None) or ():
            yield child
            if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
                yield from statements(child)


def imports_that_run(path: Path, known: Collection[str]) -> Iterator[str]:
    """The modules of the product that a module imports at any time; imports for types alone do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in statements(tree):
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


def test_the_readme_has_at_most_150_lines() -> None:
    """It is read before anything else."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_map_names_every_room_of_a_package() -> None:
    """The row of a package in ARCHITECTURE has its rooms; those of `cli` are its commands."""
    rows = re.findall(r"^\| `(\w+)/` \| (.*)$", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.MULTILINE)
    missing = [
        f"{name}/{room.parent.name}"
        for name, row in rows
        for room in sorted((SOURCE / "pyverno" / name).glob("*/__init__.py"))
        if name != "cli" and not re.search(rf"`{room.parent.name}/?`", row)
    ]
    assert rows
    assert [] == missing


def test_no_test_sleeps_to_show_that_nothing_happens() -> None:
    """A sleep is in a loop that polls; otherwise a later event shows that the earlier one had no effect."""
    found: dict[str, set[str]] = {}
    unit = ROOT / "tests" / "unit"
    for path in sorted(unit.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        names = set(_sleepers(ast.parse(text), "", in_loop=False)) if "sleep(" in text else set()
        if names:
            found[path.relative_to(unit).as_posix()] = names
    assert SLEEPERS == found


def test_tests_are_patient_and_measure_no_wall_clock() -> None:
    """A busy machine makes no test fail: waits have half a minute, and no upper bound is put on elapsed time.

    Elapsed time may have a lower bound, and processor time (`time.process_time`) an upper one.
    """
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        place = path.relative_to(ROOT / "tests").as_posix()
        if place.startswith(("bench/", "conformance/", "differential/")):  # they measure, or repeat upstream's limits
            continue
        text = path.read_text(encoding="utf-8")
        if not WAITING(text):
            continue
        tree = ast.parse(text)
        names = set(_impatient(tree, "", _numbers(tree)))
        if names:
            found[place] = names
    assert WAITS == found


def _numbers(tree: ast.Module) -> dict[str, float]:
    """Return the numbers among the constants of a module."""
    found: dict[str, float] = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, int | float):
            found[target.id] = value.value
    return found


def _impatient(node: ast.AST, function: str, numbers: dict[str, float]) -> Iterator[str]:
    """Return the functions that wait for a short time, or fail when more than some time has passed."""
    for child in ast.iter_child_nodes(node):
        name = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        limit = _time_limit(child)
        seconds = numbers.get(limit.id) if isinstance(limit, ast.Name) else getattr(limit, "value", None)
        if isinstance(seconds, int | float) and seconds < PATIENCE:
            yield name
        if isinstance(child, ast.Assert) and CLOCK(ast.unparse(child.test)):
            yield name
        if isinstance(child, ast.For) and 0 < _most_seconds(child) < PATIENCE:
            yield name
        yield from _impatient(child, name, numbers)


def _most_seconds(loop: ast.For) -> float:
    """Return how long a loop over a fixed range polls until something holds; 0 for other loops."""
    body = ast.Module(loop.body, [])
    rounds = re.fullmatch(r"range\((\d+)\)", ast.unparse(loop.iter))
    pauses = re.findall(r"sleep\(([\d.]+)\)", ast.unparse(body))
    ends = any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(body))
    return int(rounds[1]) * max(map(float, pauses)) if rounds and pauses and ends else 0.0


def _time_limit(node: ast.AST) -> ast.expr | None:
    """Return the time after which a call gives up, or that is added to the clock for a deadline."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and ast.unparse(node.left) == "time.monotonic()":
        return node.right
    if not isinstance(node, ast.Call):
        return None
    called = ast.unparse(node.func).rpartition(".")[2]
    if called in {"communicate", "run", "check_output", "HTTPSConnection", "create_connection", "install"}:
        return next((each.value for each in node.keywords if each.arg == "timeout"), None)
    number = {"timeout": 0, "wait": 0, "join": 0, "result": 0, "wait_for": 1}.get(called)
    return node.args[number] if number is not None and len(node.args) > number else None


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
