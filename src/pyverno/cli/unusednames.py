"""Names in values files, --set and exceptions that nothing of the run has: misspelt, they change nothing in silence.

Only what certainly has no effect is reported. Kyverno's command line says nothing of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.resource import Resource
from pyverno.kube.wildcard import match
from pyverno.kube.yaml.documents import Document
from pyverno.lazyregex import regex
from pyverno.offline.session import Session
from pyverno.offline.values import Values, variable_parts
from pyverno.policy.kinds import RULE_KINDS
from pyverno.spelling import did_you_mean

__all__ = ["unused_exceptions", "unused_values"]

_SHOWN: Final = 5
_CHAIN: Final = regex(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*")
_READ: Final = ("request.object", "request.oldObject", "request.operation")
"""Variables that change the request itself."""

_NAMES: Final = ("name", "namespace")
_Path = tuple[str, ...]


def unused_values(
    values: Values, source: str, session: Session, objects: Iterable[JSONObject], others: Iterable[Document] = ()
) -> Iterator[str]:
    """Yield a line for each sort of names in a values file, or --set, that nothing of the run has.

    `objects` are those that may be judged, `others` documents besides the policies that may read variables.
    """
    views = [Resource(each) for each in objects]
    # a policy that is not valid is an error of its own
    rules: dict[str, set[str] | None] = {
        item.written.name: None for item in session.compilation.items if item.written is not None and item.errors
    }
    for policy in session.policies:
        info = policy.info
        # a policy in CEL is one rule without a name
        own = {name for rule in policy.rules for name in (rule.info.name, rule.info.origin)}
        rules[info.name] = own if info.kind in RULE_KINDS and rules.get(info.name, own) is not None else None
    known = {each.name for each in views}
    unknown = [each.name for each in values.policies if each.name not in rules]
    yield from _line(source, "no policy of this run is named", unknown, rules)
    for each in (each for each in values.policies if each.name in rules):
        names = rules[each.name]
        if names is not None:
            missing = [rule.name for rule in each.rules if rule.name not in names]
            yield from _line(source, f"policy `{each.name}` has no rule", missing, names)
        lost = [own.name for own in each.resources if own.name not in known]
        yield from _line(source, f"values of policy `{each.name}`: no resource is named", lost, known)
    namespaces = {name for each in views for name in (each.namespace, each.name if each.kind == "Namespace" else "")}
    away = [each.name for each in values.namespace_selector if each.name not in namespaces]
    yield from _line(source, "no resource is in the namespace", away, namespaces)
    documents = [*(item.document for item in session.compilation.items), *others]
    yield from _line(source, "no policy reads the variable", _unread(values, documents), ())


def unused_exceptions(exceptions: Sequence[Document], session: Session) -> Iterator[str]:
    """Yield a line for the exceptions that name no policy of the run."""
    known = {name for policy in session.policies for name in (policy.info.name, policy.info.key)}
    known |= {item.written.name for item in session.compilation.items if item.written is not None}
    unused = [
        Resource(each.value).name
        for each in exceptions
        if (named := [*_excused(each.value)]) and not any(match(name, other) for name in named for other in known)
    ]
    yield from _line("exceptions", "no policy of this run is named in", unused, ())


def _excused(exception: JSON) -> Iterator[str]:
    spec = exception.get("spec") if isinstance(exception, dict) else None
    for field, key in (("exceptions", "policyName"), ("policyRefs", "name")):
        entries = spec.get(field) if isinstance(spec, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            name = entry.get(key) if isinstance(entry, dict) else None
            if isinstance(name, str):
                yield name


def _line(source: str, text: str, names: Sequence[str], known: Collection[str] | Mapping[str, object]) -> Iterator[str]:
    found = [*dict.fromkeys(names)]
    if found:
        shown = ", ".join(f"`{name}`" for name in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        yield f"{source}: {text} {shown}{more}{did_you_mean(found[0], known) if len(found) == 1 else ''}"


def _unread(values: Values, documents: Iterable[Document]) -> list[str]:
    """Return the variables that no expression reads, neither themselves nor a part of them or what they are part of."""
    given = [
        *values.global_values,
        *(name for policy in values.policies for each in policy.resources for name in each.values),
        *(name for policy in values.policies for each in policy.rules for name in (*each.values, *each.foreach_values)),
    ]
    wanted = [name for name in given if not name.startswith(_READ)]
    if not wanted:
        return []
    read: dict[str, set[_Path]] = {}
    for document in documents:
        for text in _texts(document.value):
            for chain in _CHAIN.findall(text):
                path = tuple(chain.split("."))
                read.setdefault(path[0], set()).add(path)
    return [name for name in wanted if not _is_read(tuple(variable_parts(name)), read)]


def _is_read(name: _Path, read: Mapping[str, Collection[_Path]]) -> bool:
    return any(path == name[: len(path)] or name == path[: len(name)] for path in read.get(name[0], ()))


def _texts(policy: JSON) -> Iterator[str]:
    """Yield the keys and texts of a policy; names are declared, and not read, unless they hold variables."""
    waiting = [policy]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from map(str, value)
            names = (each for key, each in value.items() if key in _NAMES and isinstance(each, str))
            yield from (name for name in names if "{{" in name)
            waiting.extend(each for key, each in value.items() if key not in _NAMES or not isinstance(each, str))
        elif isinstance(value, list):
            waiting.extend(value)
