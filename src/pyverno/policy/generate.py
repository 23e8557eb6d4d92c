"""The `generate` block of a rule, as written.

Data stays plain JSON. This module must not generate anything.
"""

from __future__ import annotations

from typing import Any

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.context import CONTEXT, ContextEntry
from pyverno.policy.match import label_selector
from pyverno.policy.schema import Field, Record, boolean, free, list_of, text
from pyverno.value import dataclass, field

__all__ = ["GENERATE", "Clone", "CloneList", "Generate", "GenerateForeach", "GeneratePattern"]


@dataclass(frozen=True, slots=True)
class Clone:
    """One source that is copied."""

    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class CloneList:
    """Several sources that are copied; `kinds` are `apiVersion/kind`, None when not written."""

    namespace: str = ""
    kinds: tuple[str, ...] | None = None
    selector: JSONObject | None = None


@dataclass(frozen=True, slots=True)
class GeneratePattern:
    """The generated object: a target and its source (inline `data`, `clone` or `clone_list`)."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    data: JSON = None
    clone: Clone = field(default_factory=Clone)
    clone_list: CloneList = field(default_factory=CloneList)


@dataclass(frozen=True, slots=True)
class GenerateForeach:
    """A generation for every element of a list; `elements` is the JMESPath expression of `list`."""

    elements: str = ""
    context: tuple[ContextEntry, ...] = ()
    preconditions: JSON = None
    pattern: GeneratePattern = field(default_factory=GeneratePattern)
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Generate:
    """A generation; `foreach` is None when not written."""

    generate_existing: bool | None = None
    synchronize: bool = False
    orphan_downstream_on_policy_delete: bool = False
    pattern: GeneratePattern = field(default_factory=GeneratePattern)
    foreach: tuple[GenerateForeach, ...] | None = None
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


_PATTERN_FIELDS = (
    Field("api_version", text),
    Field("kind", text),
    Field("namespace", text),
    Field("name", text),
    Field("uid", text),
    Field("data", free),
    Field("clone", Record(Clone, Field("namespace", text), Field("name", text))),
    Field(
        "clone_list",
        Record(
            CloneList,
            Field("namespace", text),
            Field("kinds", list_of(text)),
            Field("selector", label_selector),
        ),
    ),
)
_PATTERN_NAMES = frozenset(row.name for row in _PATTERN_FIELDS)


def _with_pattern(build: type[Any]) -> Any:
    def built(**values: Any) -> Any:
        pattern = {name: value for name, value in values.items() if name in _PATTERN_NAMES}
        rest = {name: value for name, value in values.items() if name not in _PATTERN_NAMES}
        return build(pattern=GeneratePattern(**pattern), **rest)

    return built


_FOREACH = Record(
    _with_pattern(GenerateForeach),
    Field("elements", text, json="list"),
    Field("context", CONTEXT),
    Field("preconditions", free),
    *_PATTERN_FIELDS,
    extras=("path", "raw"),
)

GENERATE = Record(
    _with_pattern(Generate),
    Field("generate_existing", boolean),
    Field("synchronize", boolean),
    Field("orphan_downstream_on_policy_delete", boolean),
    Field("foreach", list_of(_FOREACH)),
    *_PATTERN_FIELDS,
    extras=("path", "raw"),
)
