"""Excludes: violations that a rule or an exception tolerates, compiled once.

An exclude is itself evaluated: the checks of its control run on the part of the pod that it names, and each
field error found that way removes one error of the same field.
(Kyverno: pkg/pss, ApplyPodSecurityExclusion)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from pyverno.kube.imageref.globs import exempting_text
from pyverno.kube.json import JSON
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.kube.wildcard import compile_wildcard
from pyverno.podsecurity.control import Judge
from pyverno.podsecurity.controls import CONTROLS
from pyverno.podsecurity.finding import FieldError, Violation
from pyverno.podsecurity.pod import Pod
from pyverno.value import dataclass

__all__ = ["Exclude", "compile_excludes", "exempt"]

_CHECK_IDS: dict[str, tuple[str, ...]] = {
    control.name: tuple(check.id for check in control.checks) for control in CONTROLS if control.name
}


@dataclass(frozen=True, slots=True)
class Exclude:
    """One compiled exclude.

    `matches_image` is None when the exclude names no images and so concerns the pod itself; `matches_value` is
    None when it names no values and so tolerates all of them; an empty `restricted_field` means every field.
    """

    control: str
    check_ids: tuple[str, ...]
    matches_image: Callable[[str], bool] | None
    restricted_field: str
    matches_value: Callable[[str], bool] | None

    def subject(self, pod: Pod) -> Pod:
        """Return the part of the pod that this exclude covers."""
        return pod.only_pod_level() if self.matches_image is None else pod.only_containers(self.matches_image)

    def tolerates(self, error: FieldError) -> bool:
        """Return True if the field is the one named and every offending value is listed."""
        if self.restricted_field and self.restricted_field != error.starred_field:
            return False
        return self.matches_value is None or all(self.matches_value(value) for value in error.offending_values)

    def likeness(self, error: FieldError) -> tuple[str, str | None]:
        """Return what an error found on the whole pod must share with a tolerated one to be taken away."""
        # An exclude without images was evaluated on a blank container, which has no name.
        return error.starred_field, None if self.matches_image is None else error.container


def compile_excludes(excludes: JSON) -> tuple[Exclude, ...]:
    """Compile a list of excludes as written in `validate.podSecurity.exclude` or `spec.podSecurity`.

    A control name that is not known excludes nothing. Entries that are no objects are left to the schema.

    >>> compile_excludes([{"controlName": "Host Namespaces"}])[0].check_ids
    ('hostNamespaces',)
    """
    if not isinstance(excludes, list | tuple):
        return ()
    return tuple(_compile(exclude) for exclude in excludes if isinstance(exclude, dict))


def _compile(exclude: Mapping[str, JSON]) -> Exclude:
    name, field = exclude.get("controlName"), exclude.get("restrictedField")
    name = name if isinstance(name, str) else ""
    return Exclude(
        control=name,
        check_ids=_CHECK_IDS.get(name, ()),
        matches_image=_any_of(exclude.get("images"), exempting_text),
        restricted_field=field if isinstance(field, str) else "",
        matches_value=_any_of(exclude.get("values")),
    )


def _any_of(
    patterns: JSON, compiled: Callable[[str], Callable[[str], bool]] = compile_wildcard
) -> Callable[[str], bool] | None:
    if not isinstance(patterns, list) or not patterns:
        return None
    matchers: tuple[Callable[[str], bool], ...] = tuple(
        compiled(pattern) for pattern in patterns if isinstance(pattern, str)
    )
    if len(matchers) == 1:
        return matchers[0]
    return lambda text: any(matches(text) for matches in matchers)


def exempt(
    violations: Iterable[Violation],
    excludes: Iterable[Exclude],
    pod: Pod,
    judges: Mapping[str, Judge],
    meter: Meter = UNMETERED,
) -> tuple[Violation, ...]:
    """Return the violations that the excludes leave, in their order.

    `judges` are the checks of the rule's level and version by id. `meter` is charged for every container and error.
    """
    left = {violation.check_id: violation for violation in violations}
    for exclude in excludes:
        if left.keys().isdisjoint(exclude.check_ids):
            continue
        meter.charge_steps(len(pod.containers))
        subject = exclude.subject(pod)
        for check_id in exclude.check_ids:
            violation = left.get(check_id)
            if violation is None:
                continue
            meter.charge_steps(len(subject.containers) + 4 * len(violation.errors))
            finding = judges[check_id](subject)
            if finding is None:
                continue
            errors = _without(violation.errors, finding.errors, exclude)
            if errors:
                left[check_id] = violation.with_errors(errors)
            else:
                del left[check_id]
    return tuple(left.values())


def _without(
    found: tuple[FieldError, ...], candidates: tuple[FieldError, ...], exclude: Exclude
) -> tuple[FieldError, ...]:
    """Take one error away per tolerated candidate, always the first that is alike, in n log n steps."""
    left, alike = list(found), [exclude.likeness(error) for error in found]
    places: dict[tuple[str, str | None], list[int]] = {}
    for place, likeness in enumerate(alike):
        places.setdefault(likeness, []).append(place)
    for tolerated in filter(exclude.tolerates, candidates):
        likeness = exclude.likeness(tolerated)
        waiting = places.get(likeness, [])
        while waiting:
            place = heappop(waiting)
            # A place may be stale: emptied, or filled by another error since it was noted.
            if place < len(left) and alike[place] == likeness:
                _fill(left, alike, places, place)
                break
    return tuple(left)


def _fill(
    left: list[FieldError],
    alike: list[tuple[str, str | None]],
    places: dict[tuple[str, str | None], list[int]],
    place: int,
) -> None:
    """Remove one error and fill the gap with the last one, as Kyverno does; this decides the order in the message."""
    last, likeness = left.pop(), alike.pop()
    if place < len(left):
        left[place], alike[place] = last, likeness
        heappush(places[likeness], place)
