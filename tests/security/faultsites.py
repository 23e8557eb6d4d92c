"""Every place at which a rule can run into a bug: found by introspection of the package, made to fail one at a time.

A site is a function or method of `pyverno.engine`, a function of another room that an engine module calls, a method of
a language that compiled rules hold, a call of the Host, or a callable that a compiled rule holds in a field. What
contains faults (`CONTAINMENT`) is no site, because the tests check that it catches the faults. Nothing here judges.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import pyverno.engine
from pyverno.lang.cel import Program
from pyverno.lang.pattern.mutate import Overlay
from pyverno.lang.pattern.validate import Pattern
from pyverno.lang.template import Template
from pyverno.lang.template.expression_text import ExpressionText
from pyverno.lang.template.patchtext import PatchText
from pyverno.offline.host import OfflineHost
from pyverno.podsecurity import PodSecurityCheck

__all__ = ["CONTAINMENT", "Sites", "modules_of", "sampled"]

LANGUAGES = (Program, Overlay, Pattern, Template, ExpressionText, PatchText, PodSecurityCheck)

CONTAINMENT = frozenset(
    {
        *(
            f"pyverno.engine.engine.Engine.{name}"
            for name in ("review", "_run_sequence", "_record", "_verdicts", "_note")
        ),
        "pyverno.engine.engine.Engine._has_no_supplied_variables",
        *(f"pyverno.engine.engine.Engine.{name}" for name in ("_may_have_failed_before", "_excuse")),
        "pyverno.engine.engine._Course.move_to",
        "pyverno.engine.engine._passes",
        "pyverno.engine.engine.Review.decision",
        "pyverno.engine.decision.decide",
        "pyverno.engine.decision._unworded",
        "pyverno.engine.faults.error_verdict",
        "pyverno.engine.faults.fault_of",
        "pyverno.engine.faults.trace_of",
        "pyverno.engine.fast.plan.Candidate.of",
        "pyverno.engine.fast.plan.Candidate.broken",
        "pyverno.engine.timeslice.CompileSlice.make",
        *(
            f"pyverno.engine.fast.plan.{name}"
            for name in ("make_plan", "_sequences", "_build_plan", "_first_candidates", "_is_apart", "_pass_check")
        ),
        *(f"pyverno.engine.policyset.PolicySet.{name}" for name in ("plan", "_select", "_candidate")),
    }
)
"""The frame of a review: it calls nothing of a rule outside of a `try`."""

_PLUMBING = ("__", "_asdict", "_make", "_replace", "_new_member_", "_generate_next_value_")
"""Functions that Python makes for a class or calls itself: `__missing__` raises KeyError for an unbound name."""

# what makes things before a review begins, or is asked for after it
_ELSEWHERE = (
    "pyverno.value.",
    "pyverno.engine.host.NoHost.",
    "pyverno.engine.scope.Scope._force",
    "pyverno.engine.scope._load_failure",
    "pyverno.lazyregex.",
    "pyverno.engine.cel.constraints._see",
    "pyverno.engine.match.IndexKey.is_short",
    "pyverno.engine.match._is_short",
    "pyverno.engine.redaction._texts",
    *(
        f"pyverno.engine.rules.conditions.{name}"
        for name in ("_sides_of", "has_own_wildcards", "_reads_request", "_static_items")
    ),
    "pyverno.engine.faults.",
    "pyverno.engine.rules.conditions.compile_conditions",
    "pyverno.engine.rules.conditions.reads_data",
    "pyverno.engine.rules.conditions.condition_test",
    "pyverno.lang.pattern.validate.Pattern.observed",
    "pyverno.engine.rules.conditions.Conditions.templates",
    *(
        f"pyverno.engine.rules.conditions.{name}"
        for name in ("_block", "_condition", "_malformed", "_test", "_unknown_operator")
    ),
    *(f"pyverno.engine.rules.conditions.{name}" for name in ("_both_dynamic", "as_float")),
    "pyverno.engine.cel.constraints.ResourceRule.of",
    "pyverno.engine.cel.constraints.ConstraintMatcher.blocks",
    "pyverno.engine.result.RuleResult.rule_name",
    "pyverno.engine.rule.PolicyInfo.is_scored",
    "pyverno.lang.pattern.operators.operator",
    "pyverno.lang.template.template.compile_template",
    "pyverno.lang.cel.program.Program.",
    "pyverno.kube.labelsyntax.",
    "pyverno.engine.policyset.PolicySet.",
    "pyverno.engine.request.",
    "pyverno.engine.fast.conditions.",
    "pyverno.engine.triggers.",
    "pyverno.engine.cel.authorization.",
    "pyverno.engine.timeslice.",
    "pyverno.engine.engine.Engine.explain",
    "pyverno.engine.engine.Engine.blame",
    "pyverno.engine.actions.cel.admission.AdmissionValidation.session",
    "pyverno.engine.actions.cel.validate.ValidatingCheck.session",
    "pyverno.engine.cel.session.CelSession.variables",
    "pyverno.engine.engine.Review.",
)

_SCALARS = frozenset({str, int, bool, float, bytes, type(None), dict, list})
"""Types of fields that hold no function."""


def _is_site(site: str) -> bool:
    if site == "pyverno.lang.cel.program.Program.evaluate":
        return True
    return site not in CONTAINMENT and not site.startswith(_ELSEWHERE)


def engine_modules() -> list[ModuleType]:
    """Return all modules of the engine that a review uses; an explanation is made after the review."""
    names = [info.name for info in pkgutil.walk_packages(pyverno.engine.__path__, "pyverno.engine.")]
    # both look at a review after the fact
    names = [name for name in names if not name.startswith(("pyverno.engine.explain", "pyverno.engine.blame"))]
    for name in names:
        importlib.import_module(name)
    return [sys.modules[name] for name in sorted(names)]


@dataclass
class Sites:
    """The sites of some modules, those of the engine by default, and which of them is made to fail.

    While `installed`, every call of a site is counted in `calls` when `is_counting`; the first call of `armed`, or with
    `always` each one, raises.
    """

    calls: dict[str, int] = field(default_factory=dict)
    is_counting: bool = False
    armed: str = ""
    error: Callable[[], BaseException] = ValueError
    always: bool = False
    thrown: int = 0
    known: set[str] = field(default_factory=set)
    modules: Callable[[], Sequence[ModuleType]] = engine_modules
    owners: Sequence[type] = (*LANGUAGES, OfflineHost)
    accepts: Callable[[str], bool] = _is_site

    def arm(self, site: str, error: Callable[[], BaseException], *, always: bool = False) -> None:
        """Let a site fail from now on, once or always."""
        self.armed, self.error, self.always, self.thrown = site, error, always, 0

    def disarm(self) -> None:
        """Let nothing fail."""
        self.armed = ""

    def passed(self, site: str) -> None:
        """Count a call, and raise if its site is armed."""
        if self.is_counting:
            self.calls[site] = self.calls.get(site, 0) + 1
        if site == self.armed and (self.always or not self.thrown):
            self.thrown += 1
            raise self.error()

    def wrapped(self, site: str, function: Any) -> Any:
        """Return a function that is a site."""
        self.known.add(site)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.passed(site)
            return function(*args, **kwargs)

        wrapper.is_site = True  # type: ignore[attr-defined]
        return wrapper

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Make all functions and methods sites, as long as the block lasts."""
        undo: list[tuple[Any, str, Any]] = []
        try:
            for owner, name, made in self._replacements():
                undo.append((owner, name, inspect.getattr_static(owner, name)))
                type.__setattr__(owner, name, made) if isinstance(owner, type) else setattr(owner, name, made)
            yield
        finally:
            for owner, name, original in reversed(undo):
                setattr(owner, name, original)

    def _replacements(self) -> list[tuple[Any, str, Any]]:
        modules = self.modules()
        made: dict[int, Any] = {}
        found: list[tuple[Any, str, Any]] = []
        for module in modules:
            for name, value in list(vars(module).items()):
                if isinstance(value, FunctionType) and value.__module__.startswith(("pyverno.", "kubesandbox.")):
                    site = f"{value.__module__}.{value.__qualname__}"
                    if self.accepts(site):
                        wrapper = made.setdefault(id(value), self.wrapped(site, value))
                        found.append((module, name, wrapper))
                elif isinstance(value, type) and value.__module__ == module.__name__:
                    found += self._methods(value)
        for value in self.owners:
            found += self._methods(value)
        return found

    def _methods(self, owner: type) -> Iterator[tuple[Any, str, Any]]:
        if issubclass(owner, BaseException) or getattr(owner, "_is_protocol", False):
            return
        for name, value in list(vars(owner).items()):
            site = f"{owner.__module__}.{owner.__qualname__}.{name}"
            if name.startswith(_PLUMBING) or not self.accepts(site):
                continue
            if isinstance(value, FunctionType):
                yield owner, name, self.wrapped(site, value)
            elif isinstance(value, staticmethod | classmethod):
                yield owner, name, type(value)(self.wrapped(site, value.__func__))
            elif isinstance(value, property) and value.fget is not None:
                yield owner, name, property(self.wrapped(site, value.fget))

    def wrap_fields(self, thing: object) -> None:
        """Make a site of every function that a compiled rule holds, however deep."""
        self._walk(thing, set())

    def _walk(self, thing: object, seen: set[int]) -> None:
        if id(thing) in seen or isinstance(thing, type):
            return
        seen.add(id(thing))
        for name, site in _fields_of(type(thing)):
            try:
                value = getattr(thing, name)
            except AttributeError:
                continue
            made = self._held(site, value, seen)
            if made is not value:
                object.__setattr__(thing, name, made)

    def _held(self, site: str, value: Any, seen: set[int]) -> Any:
        if type(value) in _SCALARS:
            return value
        if site.startswith("field Checked."):
            return value  # a compiler's memory of an expression, not a rule's
        if isinstance(value, FunctionType | BuiltinFunctionType | functools.partial):
            return value if getattr(value, "is_site", False) else self.wrapped(site, value)
        if type(value) is tuple:
            made = tuple(self._held(site, each, seen) for each in value)
            return value if all(one is other for one, other in zip(made, value, strict=True)) else made
        self._walk(value, seen)
        return value


@functools.cache
def _fields_of(kind: type) -> tuple[tuple[str, str], ...]:
    """Return name and site of each field; nothing for a value that is no dataclass."""
    if not is_dataclass(kind):
        return ()
    return tuple((each.name, f"field {kind.__name__}.{each.name}") for each in fields(kind))


def modules_of(*rooms: str) -> list[ModuleType]:
    """Return the modules of these packages, and these modules, which are imported for it."""
    found: list[ModuleType] = []
    for room in rooms:
        module = importlib.import_module(room)
        below = getattr(module, "__path__", None)
        names = [] if below is None else [info.name for info in pkgutil.walk_packages(below, f"{room}.")]
        found += [module, *map(importlib.import_module, names)]
    return found


def sampled(sites: Iterable[str], most: int) -> list[str]:
    """Return at most so many sites, always the same; all of them in the nightly run.

    >>> sampled(["a", "b"], 2)
    ['a', 'b']
    """
    found = sorted(sites)
    if os.environ.get("PYVERNO_NIGHTLY"):
        return found
    return sorted(sorted(found, key=lambda site: hashlib.sha256(site.encode()).digest())[:most])
