"""The doubling law: twice the input costs about twice as much, or is refused, in everything that a request can reach.

The run of a pull request counts what a budget is charged; `make nightly` measures processor time over the worst of all
shapes. A function without a row fails here: add it to the tables of `growth_kube`, `growth_cel`, `growth_actions` or
`growth_doors`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest

from pyverno.lang.cel.types import Type
from pyverno.lang.jmespath import FUNCTIONS
from pyverno.lang.runtime import Budget
from tests.property.growth import Subject, broken_laws, charged, lines_run
from tests.property.growth_actions import (
    ACTIONS,
    CEL_POLICIES,
    ELSEWHERE,
    POLICIES,
    action_modules,
    action_subjects,
    policy_subjects,
)
from tests.property.growth_cel import ASKS_HOST, MACROS, MAKERS, cel_subjects, macro_names, overloads
from tests.property.growth_doors import DOOR_EXEMPT, door_readers, door_subjects
from tests.property.growth_jmespath import jmespath_subjects
from tests.property.growth_kube import EXEMPT, kube_subjects, listed, public_functions
from tests.property.growth_writers import REPORT_EXEMPT, REPORT_ROWS, report_functions, writer_subjects

NIGHTLY = bool(os.environ.get("PYVERNO_NIGHTLY"))
PARTS = 8
"""Of each room, so that several processes share what takes longest."""
RATIO = 2.2
SORTED_RATIO = 2.3
"""Of n log n at a few hundred items."""

SMALL = 4096
UNIT = 64
"""Steps that any call may cost besides."""
PRODUCTS = (
    "contains",
    "split",
    "replace",
    "replace_all",
    "regex_match",
    "regex_replace_all",
    "regex_replace_all_literal",
    "pattern_match",
    "label_match",
)
"""Functions that look for one text in another, and are charged what the worst pair takes: the product of both."""

CONSTANT = frozenset(
    f"jmespath {name}()" for name in ("type", "length", "lookup", "not_null", "to_array", "to_boolean")
)
"""Functions that look at a length, a type, one key or the first letters of their arguments."""

ROOMS = {
    "jmespath": lambda: jmespath_subjects(samples=60 if NIGHTLY else 2),
    "cel": lambda: cel_subjects(samples=40 if NIGHTLY else 1),
    "kube": kube_subjects,
    "actions": action_subjects,
    "policies": policy_subjects,
    "writers": writer_subjects,
    "doors": door_subjects,
}


def _sampled(subject: Subject, count: int) -> Iterator[str]:
    names = sorted(subject.shapes)
    chance = Random(subject.name)  # noqa: S311 - shapes, no secret
    yield from names if len(names) <= count else chance.sample(names, count)


def _growing(subject: Subject) -> list[str]:
    """Return shapes whose first argument alone grows."""
    wanted = ("text letters", "texts", "numbers", "map", "objects")
    return [name for name in subject.shapes if name.partition(",")[0] in wanted][:6]


def test_every_function_of_kube_and_patterns_has_a_row() -> None:
    """A public function without a row would escape the law; a row without its function is stale."""
    known, found = {*listed(), *EXEMPT}, {name for name, _ in public_functions()}
    recipe = (
        "add a row to a table of growth_kube.py: TEXT_READERS, VALUE_READERS, PAIRS or SPECIAL, or a reason to EXEMPT"
    )
    assert set() == found - known, recipe
    assert set() == known - found, "remove the rows of functions that are gone from growth_kube.py"


def test_every_macro_and_type_of_cel_has_a_row() -> None:
    """Overloads are found in the libraries; macros need an expression and opaque types a maker."""
    needed: set[str] = set()
    for _, library, _, overload in overloads():
        if library.name not in ASKS_HOST:
            needed |= {name for type_ in overload.signature.params for name in _opaque_names(type_)}
    assert needed - {*MAKERS} == set()
    assert macro_names() - {*MACROS} == set()


def _opaque_names(type_: Type) -> set[str]:
    own = {type_.name} if type_.kind in ("opaque", "struct") and type_.name != "optional_type" else set()
    return own.union(*(_opaque_names(each) for each in type_.params)) if type_.params else own


def test_every_action_has_a_row() -> None:
    """A module of actions that no policy here uses would escape the law."""
    assert action_modules() == {*ACTIONS, *ELSEWHERE}
    assert {name for rows in ACTIONS.values() for name in rows} <= {*POLICIES, *CEL_POLICIES}


def test_every_row_of_actions_runs_its_rule() -> None:
    """A row whose rule is not asked would measure nothing."""
    subjects = [*action_subjects()]
    reviews = [subject.shapes["containers bare"](SMALL)(Budget()) for subject in subjects]
    assert [] == [subject.name for subject, (review, _) in zip(subjects, reviews, strict=True) if not review.results]


def test_every_function_that_writes_a_report_has_a_row() -> None:
    """A report format without a row would escape the law."""
    assert {*report_functions()} == {*REPORT_ROWS, *REPORT_EXEMPT}


def test_every_reader_of_a_door_has_a_row() -> None:
    """A function that reads what peers, users or files send, and has no row, would escape the law."""
    rows, found = {subject.name for subject in door_subjects()}, {*door_readers()}
    assert set() == found - rows - {*DOOR_EXEMPT}, "add a row to growth_doors.py, or a reason to DOOR_EXEMPT"
    assert set() == {*DOOR_EXEMPT} - found


@pytest.mark.skipif(NIGHTLY, reason="the nightly run measures time instead")
@pytest.mark.parametrize("room", ["cel", "kube", "writers", "doors"])
def test_lines_run_grow_with_the_input(room: str) -> None:
    """Twice the input runs at most 2.3 times the lines of Python, but for lines that the budget is charged for."""
    broken = []
    for subject in ROOMS[room]():
        for name in _sampled(subject, 4):
            shape = subject.shapes[name]
            ratio = SORTED_RATIO ** (1 + (name in subject.paired))
            lines_run(shape, UNIT)  # what is imported or compiled on first use
            (once, end), (twice, doubled_end) = lines_run(shape, SMALL), lines_run(shape, 2 * SMALL)
            if end == doubled_end and twice > ratio * once + UNIT:
                broken.append(f"{subject.name}: {name}: {once} lines, {twice} for twice the input")
    assert broken == []


@pytest.mark.skipif(NIGHTLY, reason="the nightly run measures time instead")
@pytest.mark.parametrize("room", ["jmespath", "actions"])
def test_steps_charged_grow_with_the_input(room: str) -> None:
    """Twice the input is charged at most 2.2 times as many steps; twice that where two growing texts are compared."""
    broken = []
    products = {f"jmespath {name}()" for name in PRODUCTS}
    for subject in ROOMS[room]():
        ratio = RATIO**2 if subject.name in products else RATIO
        for name in _sampled(subject, 12 if room == "jmespath" else 6):
            shape = subject.shapes[name]
            once, twice = charged(shape, SMALL), charged(shape, 2 * SMALL)
            if once.end == twice.end and twice.steps > ratio * once.steps + UNIT:
                broken.append(f"{subject.name}: {name}: {once.steps} steps, {twice.steps} for twice the input")
    assert broken == []


@pytest.mark.skipif(NIGHTLY, reason="the nightly run measures time instead")
def test_a_function_that_reads_its_input_charges_for_it() -> None:
    """A text or list of 256 KiB costs every function of JMESPath at least 16 steps, or is refused."""
    free = set()
    for subject in ROOMS["jmespath"]():
        if "()" not in subject.name or not FUNCTIONS[subject.name[9:-2]].parameters:
            continue
        found = [charged(subject.shapes[name], 1 << 18) for name in _growing(subject)]
        if found and not any(each.end == "refused" or each.steps >= 16 for each in found):
            free.add(subject.name)
    assert free == CONSTANT


@pytest.mark.skipif(NIGHTLY, reason="the nightly run measures time instead")
@pytest.mark.parametrize("room", ["cel", "kube", "policies", "writers", "doors"])
def test_every_function_ends_on_inputs_of_every_shape(room: str) -> None:
    """Each call ends in a value, a refusal or one of our own errors, at a size that ordinary objects have."""
    for subject in ROOMS[room]():
        for name in _sampled(subject, 3):
            assert charged(subject.shapes[name], SMALL).steps >= 0


@pytest.mark.skipif(not NIGHTLY, reason="takes many minutes of processor time")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("room", [*ROOMS])
def test_time_grows_with_the_input(room: str, part: int) -> None:
    """Twice the input takes at most 2.6 times the processor time, for the shapes that cost most."""
    subjects = islice(ROOMS[room](), part, None, PARTS)
    assert [each for subject in subjects for each in broken_laws(subject)] == []
