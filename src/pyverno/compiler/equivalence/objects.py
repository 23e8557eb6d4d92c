"""Objects of the built-in kinds, made at random from their schemas and steered by the vocabulary of policies.

The same seed makes the same objects. They need not be valid: the caller decides which an API server would admit.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from pyverno.compiler.equivalence.vocabulary import Vocabulary
from pyverno.kube.json import JSON, JSONObject, deep_copy
from pyverno.kube.kinds import KindInfo
from pyverno.kube.schemas import SchemaSet, schema_set

__all__ = ["ObjectMaker"]

_DEEPEST: Final = 14
_MENTIONED: Final = 0.65
_OTHER: Final = 0.02
_OTHER_KEYS: Final = 0.4
_NAMESPACES: Final = ("default", "team-a", "prod", "kube-system")
_PLAIN: Final[Sequence[str]] = ("a", "web", "x", "nginx", "1", "true")
_BY_NAME: Final[dict[str, Sequence[JSON]]] = {
    "image": ("nginx", "nginx:latest", "nginx:1.25", "ghcr.io/org/app:v1", "registry.example/app@sha256:" + "a" * 64),
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "protocol": ("TCP", "UDP", "SCTP"),
    "path": ("/", "/data", "/var/run/docker.sock"),
    "mountPath": ("/data", "/etc/x"),
    "host": ("a.example.com", "*.example.com"),
    "schedule": ("0 * * * *",),
    "drop": ("ALL", "NET_RAW"),
    "add": ("NET_ADMIN", "NET_BIND_SERVICE", "SYS_ADMIN"),
    "verbs": ("get", "list", "*", "create"),
    "resources": ("pods", "secrets", "*"),
    "apiGroups": ("", "apps", "*"),
    "operator": ("Exists", "Equal", "In"),
    "cpu": ("100m", "1", "2"),
    "memory": ("64Mi", "1Gi", "2Gi"),
}
"""Values that fields of a name often have."""

_QUANTITIES: Final = ("0", "100m", "1", "64Mi", "512Mi", "1Gi", "2Gi")
_NUMBERS: Final = (0, 1, 2, 3, 5, 80, 443, 1000, 8080)
_LABEL_KEYS: Final = ("app", "team", "app.kubernetes.io/name")
_NEVER: Final = frozenset({"managedFields", "status", "ownerReferences", "finalizers", "selfLink", "deletionTimestamp"})


class ObjectMaker:
    """Makes objects of some kinds, and variations of objects."""

    def __init__(self, vocabulary: Vocabulary, seed: int, kube_version: str = "") -> None:
        """Take the vocabulary of policies; `kube_version` chooses the schemas (the newest by default)."""
        self._vocabulary = vocabulary
        self._chance = random.Random(seed)  # noqa: S311 - the same objects for the same seed
        builtin = schema_set(kube_version) if kube_version else schema_set()
        self._schemas: SchemaSet = builtin.with_kinds(vocabulary.schemas) if vocabulary.schemas else builtin
        self._texts = [each for each in vocabulary.constants if isinstance(each, str)]
        self._numbers = [each for each in vocabulary.constants if isinstance(each, int) and not isinstance(each, bool)]

    def make(self, info: KindInfo) -> JSONObject | None:
        """Return an object of a kind, None when there is no schema of it."""
        schema = self._schemas.find(info.group, info.version, info.kind)
        if schema is None:
            return None
        made = self._struct(schema, 0)
        metadata: JSONObject = {"name": self._chance.choice(("a", "web", *self._names()))}
        if info.namespaced:
            metadata["namespace"] = self._chance.choice((*_NAMESPACES, *self._names()))
        if self._chance.random() < 0.6:
            metadata["labels"] = self._map(None, "labels")
        if "annotations" in self._vocabulary.names and self._chance.random() < 0.5:
            metadata["annotations"] = self._map(None, "annotations")
        return {**made, "apiVersion": info.api_version, "kind": info.kind, "metadata": metadata}

    def make_options(self, info: KindInfo, properties: JSONObject) -> JSONObject:
        """Return the options of a request: an object of a kind without metadata."""
        made = {name: self._value(below, name, 1) for name, below in properties.items() if self._chance.random() < 0.7}
        return {"apiVersion": info.api_version, "kind": info.kind, **made}

    @property
    def schemas(self) -> SchemaSet:
        """The schemas that objects are made by."""
        return self._schemas

    def vary(self, body: JSONObject) -> JSONObject:
        """Return the object with a few places changed: values replaced, fields removed, elements repeated."""
        changed = deep_copy(body)
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            holders = [each for each in _holders(changed) if each is not changed]
            if not holders:
                break
            self._change(self._chance.choice(holders))
        return changed

    # ------------------------------------------------------------------------------------------------------- by schema

    def _struct(self, schema: JSONObject, depth: int) -> JSONObject:
        made: JSONObject = {}
        required = schema.get("required", ())
        for name, below in schema.get("properties", {}).items():
            if name in _NEVER or (depth == 0 and name in ("apiVersion", "kind", "metadata")):
                continue
            is_mentioned = name in self._vocabulary.names
            share = (
                1.0 if name in required or (depth == 0 and name == "spec") else _MENTIONED if is_mentioned else _OTHER
            )
            if depth < _DEEPEST and self._chance.random() < share:
                value = self._value(below, name, depth + 1)
                if value is not None:
                    made[name] = value
        return made

    def _value(self, schema: JSONObject, name: str, depth: int) -> JSON:
        found = self._schemas.followed(schema)
        if found is None or depth > _DEEPEST:
            return None
        if name in ("selector", "matchLabels") and name not in self._vocabulary.names:
            return {"matchLabels": {"app": "a"}} if name == "selector" and "matchLabels" in str(found) else None
        if found.get("properties"):
            return self._struct(found, depth)
        types = found.get("type")
        kind = next((each for each in types if each != "null"), "") if isinstance(types, list) else types
        if kind == "array":
            return self._list(found.get("items") or {}, name, depth)
        if kind == "object":
            return self._map(found.get("additionalProperties"), name, depth)
        return self._scalar(found, str(kind or ""), name)

    def _list(self, items: JSONObject, name: str, depth: int) -> list[JSON]:
        count = self._chance.choice((1, 1, 1, 2, 2, 3, 0))
        made = [each for each in (self._value(items, name, depth) for _ in range(count)) if each is not None]
        for index, each in enumerate(made):
            if isinstance(each, dict) and isinstance(each.get("name"), str) and self._chance.random() < 0.8:
                each["name"] = f"{each['name']}{index or ''}" if each["name"] else f"c{index}"
        return made

    def _map(self, values: JSON = None, name: str = "", depth: int = 0) -> JSONObject:
        is_quantity = name in ("limits", "requests", "hard", "capacity")
        usual = ("cpu", "memory", "ephemeral-storage") if is_quantity else (*_LABEL_KEYS, *self._keys())
        mentioned = self._vocabulary.keys.get(name, ())
        keys = (*mentioned, *mentioned, *usual) if not mentioned or self._chance.random() < _OTHER_KEYS else mentioned
        made: JSONObject = {}
        for _ in range(self._chance.choice((0, 1, 1, 2, 3))):
            key = self._chance.choice(keys)
            if is_quantity:
                made[key] = self._chance.choice((*_QUANTITIES, *self._texts[:20]))
            elif isinstance(values, dict) and values.get("type") not in ("string", None):
                made[key] = self._value(values, key, depth + 1)
            else:
                made[key] = self._chance.choice((*_PLAIN, *self._texts))
        return made

    def _scalar(self, schema: JSONObject, kind: str, name: str) -> JSON:
        chance = self._chance
        if schema.get("enum") and chance.random() < 0.9:
            return chance.choice(schema["enum"])
        if kind == "boolean":
            return chance.random() < 0.5
        if kind in ("integer", "number"):
            near = [number + step for number in self._numbers[:30] for step in (-1, 0, 1)]
            return chance.choice((*_NUMBERS, *near))
        usual = _BY_NAME.get(name, ())
        if name == "name" and chance.random() < 0.7:
            return chance.choice(("c", "web", *self._names()))
        pools: list[Sequence[JSON]] = [usual, self._texts, _PLAIN]
        if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
            pools.append(_NUMBERS)
        weights = [4 if usual else 0, 5 if self._texts else 0, 1, 3][: len(pools)]
        return chance.choice(chance.choices(pools, weights)[0])

    def _names(self) -> list[str]:
        return [text for text in self._texts if text and len(text) <= 40 and text.replace("-", "a").isalnum()][:20]

    def _keys(self) -> list[str]:
        return [text for text in self._texts if text and not any(each in text for each in " *?:{}()")][:40]

    # ------------------------------------------------------------------------------------------------------ variations

    def _change(self, holder: JSONObject | list[JSON]) -> None:
        chance = self._chance
        if isinstance(holder, list):
            index = chance.randrange(len(holder)) if holder else 0
            match chance.randrange(3):
                case 0 if holder:
                    holder.pop(index)
                case 1 if holder:
                    holder.append(deep_copy(holder[index]))
                case _:
                    if holder and isinstance(holder[index], str):
                        holder[index] = chance.choice((*_PLAIN, "*", *self._texts))
            return
        keys = [*holder]
        if not keys:
            return
        key = chance.choice(keys)
        value = holder[key]
        if chance.random() < 0.4:
            del holder[key]
        elif isinstance(value, bool):
            holder[key] = not value
        elif isinstance(value, int):
            holder[key] = chance.choice((value + 1, value - 1, 0, *self._numbers))
        elif isinstance(value, str):
            holder[key] = chance.choice((*_BY_NAME.get(key, _PLAIN), "", "*", value + "x", *self._texts))


def _holders(value: JSON) -> list[JSONObject | list[JSON]]:
    found: list[JSONObject | list[JSON]] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (dict, list)):
            found.append(each)
            waiting.extend(each.values() if isinstance(each, dict) else each)
    return found
