"""Users and namespaces of generated requests: those that the policies distinguish, and others.

A policy that looks at no user is judged for one user and for namespaces without labels of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from random import Random
from typing import Final

from pyverno.compiler.equivalence.variations import texts_near
from pyverno.engine.cel.constraints import NAME_LABEL
from pyverno.engine.explain.samples import samples
from pyverno.engine.request import User
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass, field

__all__ = ["ALICE", "Circumstances", "circumstances_of"]

ALICE: Final = User(username="alice", groups=("system:authenticated",))
"""The plain user: rules for certain users do not match without one."""

_MENTION: Final = re.compile(r"userInfo|serviceAccountName|serviceAccountNamespace")
_NAMESPACE_LABEL: Final = re.compile(
    r"namespaceObject\.\??metadata\.\??labels(?:\.orValue\(\{\}\))?(?:\.\??(\w+)|\[\??['\"]([^'\"]+)['\"]\])"
)
_QUOTED: Final = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"|`([^`\n]*)`")
_ACCOUNT: Final = "system:serviceaccount:"
_NAMES: Final = frozenset({"userInfo", "username", "groups", "object", "request", "metadata"})
_MOST: Final = 24
_NEAR: Final = 4
_PLAIN: Final = 0.4
"""The share of requests by the plain user."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The circumstances of a request: users who may send it, and labels that its namespace may have."""

    users: tuple[User, ...] = (ALICE,)
    namespaces: tuple[Mapping[str, str], ...] = field(default_factory=lambda: ({},))

    def choose(self, chance: Random) -> tuple[User, Mapping[str, str]]:
        """Return a user and the labels of a namespace."""
        plain = len(self.users) == 1 or chance.random() < _PLAIN
        user = self.users[0] if plain else chance.choice(self.users[1:])
        return user, self.namespaces[0] if len(self.namespaces) == 1 else chance.choice(self.namespaces)


def circumstances_of(documents: Iterable[JSONObject]) -> Circumstances:
    """Return the users and the labels of namespaces that policies distinguish.

    >>> subject = {"kind": "Group", "name": "dev*"}
    >>> rule = {"match": {"any": [{"subjects": [subject]}]}}
    >>> [user.groups[-1] for user in circumstances_of([{"spec": {"rules": [rule]}}]).users][:3]
    ['system:authenticated', 'dev', 'devx']
    """
    users = {_key(ALICE): ALICE}
    labels: dict[tuple[tuple[str, str], ...], None] = {(): None}
    for document in documents:
        spec = document.get("spec")
        for user in islice(_users(spec), _MOST):
            users.setdefault(_key(user), user)
        labels.update(dict.fromkeys(tuple(sorted(each.items())) for each in islice(_namespaces(spec), _MOST)))
    return Circumstances(tuple(users.values()), tuple(dict(each) for each in labels))


# --------------------------------------------------------------------------------------------------------------- users


def _key(user: User) -> tuple[str, ...]:
    return (user.username, *user.groups, "", *user.roles, "", *user.cluster_roles)


def _users(value: JSON) -> Iterator[User]:
    if isinstance(value, dict):
        for word in ("subjects", "roles", "clusterRoles"):
            listed = value.get(word)
            for each in listed if isinstance(listed, list) else ():
                yield from _of_subject(each) if word == "subjects" else _with_role(each, word)
        if "key" in value and _MENTION.search(f"{value['key']}{value.get('value')}"):
            for text in _texts([value.get("value"), value["key"]]):
                yield from _named(text)
        for below in value.values():
            yield from _users(below)
    elif isinstance(value, list):
        for below in value:
            yield from _users(below)
    elif isinstance(value, str) and _MENTION.search(value):
        for text in _texts([value]):
            yield from _named(text)


def _of_subject(subject: JSON) -> Iterator[User]:
    if not isinstance(subject, dict) or not isinstance(subject.get("name"), str):
        return
    name = subject["name"]
    match subject.get("kind"):
        case "User":
            yield from (User(username=each, groups=ALICE.groups) for each in _near(name))
        case "Group":
            yield from (User(username="bob", groups=(*ALICE.groups, each)) for each in _near(name))
        case "ServiceAccount":
            for namespace in _near(str(subject.get("namespace") or "default"))[:2]:
                yield from (_account(namespace, each) for each in _near(name)[:3])


def _with_role(role: JSON, word: str) -> Iterator[User]:
    for name in _near(str(role))[:2]:
        own = (name,)
        plain = User(username="carol", groups=ALICE.groups)
        yield plain.with_roles(own, ()) if word == "roles" else plain.with_roles((), own)


def _named(text: str) -> Iterator[User]:
    """Yield users and members of groups of a name, and service accounts of it."""
    for each in _near(text):
        if each.startswith(_ACCOUNT):
            yield _account(*each.removeprefix(_ACCOUNT).partition(":")[::2])
            continue
        yield User(username=each, groups=ALICE.groups)
        yield User(username="bob", groups=(*ALICE.groups, each))
    if text.isascii() and text.replace("-", "a").isalnum():
        yield _account(text, "default")
        yield _account("default", text)


def _account(namespace: str, name: str) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", *ALICE.groups)
    return User(username=f"{_ACCOUNT}{namespace}:{name}", groups=groups)


def _near(pattern: str) -> list[str]:
    """Return names that a pattern fits, and names beside them."""
    fitting = [each for each in samples(pattern) if isinstance(each, str) and each] or [pattern]
    beside = [text for each in fitting[:1] for text in texts_near(each) if text]
    return [*dict.fromkeys((*fitting, *beside))][: _NEAR + len(fitting)]


def _texts(values: Iterable[JSON]) -> Iterator[str]:
    """Yield the texts of a condition: literal ones, and those that expressions quote."""
    for value in values:
        if isinstance(value, list):
            yield from _texts(value)
        elif isinstance(value, str):
            quoted = [next(part for part in found.groups() if part is not None) for found in _QUOTED.finditer(value)]
            is_expression = bool(_MENTION.search(value)) or "(" in value or "{{" in value
            yield from (each for each in (quoted if is_expression else [value]) if each and each not in _NAMES)


# ---------------------------------------------------------------------------------------------------------- namespaces


def _namespaces(value: JSON) -> Iterator[dict[str, str]]:
    if isinstance(value, dict):
        for key, below in value.items():
            if key == "namespaceSelector" and isinstance(below, dict):
                yield from _of_selector(below)
            yield from _namespaces(below)
    elif isinstance(value, list):
        for below in value:
            yield from _namespaces(below)
    elif isinstance(value, str) and "namespaceObject" in value:
        texts = [*_texts([value])]
        for found in _NAMESPACE_LABEL.finditer(value):
            key = found[1] or found[2]
            yield from ({key: text} for text in ("", "x", *(each for each in texts if each != key)))


def _of_selector(selector: JSONObject) -> Iterator[dict[str, str]]:
    """Yield labels that a selector selects, and such without one of the keys or with another value."""
    wanted: dict[str, list[str]] = {}
    unwanted: dict[str, list[str]] = {}
    for key, value in (selector.get("matchLabels") or {}).items():
        fitting = [each for each in samples(str(value)) if isinstance(each, str)] or [str(value)]
        for name in _near(key)[:1]:
            wanted[name] = fitting
    for each in selector.get("matchExpressions") or ():
        values = [str(value) for value in each.get("values") or ()]
        match each.get("operator"):
            case "In" | "Exists":
                wanted[each["key"]] = values or ["x"]
            case _:
                unwanted[each["key"]] = [*values, ""] if values else ["x", ""]
    wanted.pop(NAME_LABEL, None)
    unwanted.pop(NAME_LABEL, None)
    chosen = {key: values[0] for key, values in wanted.items()}
    yield chosen
    for key, values in wanted.items():
        yield {other: value for other, value in chosen.items() if other != key}
        yield from ({**chosen, key: value} for value in (*values[1:], f"{values[0]}x", ""))
    for key, values in unwanted.items():
        yield from ({**chosen, key: value} for value in (*values, "other"))
