"""One rule of a legacy policy, as written: what it matches, what it loads, and its one action.

This module must not expand rules for pod controllers (see the compiler's autogen).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.context import CONTEXT, ContextEntry
from pyverno.policy.generate import GENERATE, Generate
from pyverno.policy.match import MATCH, MATCH_WITHOUT_FLAT, MatchBlocks
from pyverno.policy.mutate import MUTATE, Mutate
from pyverno.policy.schema import Cursor, Field, Record, boolean, free, list_of, map_of, text
from pyverno.policy.validate import CEL_CONDITION, VALIDATE, NamedExpression, Validate
from pyverno.policy.verifyimages import VERIFY_IMAGES, VERIFY_IMAGES_WITHOUT_LEGACY, ImageVerification
from pyverno.value import dataclass, field

__all__ = ["RULE", "RULE_V2BETA1", "Action", "Rule", "VerifyImages"]


@dataclass(frozen=True, slots=True)
class VerifyImages:
    """The image checks of a rule."""

    entries: tuple[ImageVerification, ...]
    path: Path = ()


Action: TypeAlias = Validate | Mutate | Generate | VerifyImages


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; `raw` is its JSON and `path` its place in the document (for a copy by autogen, that of its origin).

    `preconditions` and `image_extractors` stay plain JSON, None when not written.
    """

    name: str
    match: MatchBlocks
    action: Action
    exclude: MatchBlocks | None = None
    context: tuple[ContextEntry, ...] = ()
    preconditions: JSON = None
    cel_preconditions: tuple[NamedExpression, ...] = ()
    image_extractors: JSONObject | None = None
    report_properties: Mapping[str, str] = field(default_factory=dict)
    skip_background_requests: bool = True
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


_IMAGE_EXTRACTORS = map_of(
    list_of(
        Record(
            dict,
            Field("path", text, required=True),
            *(Field(name, text) for name in ("value", "name", "key", "jmes_path")),
        )
    )
)


def _plain_extractors(value: JSON, cursor: Cursor) -> JSON:
    _IMAGE_EXTRACTORS(value, cursor)
    return value


def _has_content(value: object) -> bool:
    """Return whether an action has content; an empty block counts as missing."""
    if isinstance(value, tuple):
        return any(each is not None and each.raw for each in value)
    return value is not None and bool(getattr(value, "raw", None))


_ACTIONS = ("validate", "mutate", "generate", "verify_images")


def _one_action(values: dict[str, Any], cursor: Cursor) -> None:
    for name in _ACTIONS:
        if not _has_content(values.get(name)):
            values.pop(name, None)
    count = sum(name in values for name in _ACTIONS)
    supported = "mutate,validate,generate,verifyImages"
    rule = values["name"]
    if count == 0:
        cursor.error("rule-action", f"No operation defined in the rule '{rule}'.(supported operations: {supported})")
    elif count > 1:
        cursor.error(
            "rule-action",
            f"Multiple operations defined in the rule '{rule}', only one operation ({supported}) is allowed per rule",
        )


def _rule(*, path: Path, verify_images: tuple[ImageVerification, ...] = (), **values: Any) -> Rule:
    actions = [values.pop(name) for name in _ACTIONS if name in values]
    if verify_images:
        actions.append(VerifyImages(verify_images, (*path, "verifyImages")))
    return Rule(action=actions[0], path=path, **values)


RULE = Record(
    _rule,
    Field("name", text, required=True),
    Field("match", MATCH, required=True),
    Field("exclude", MATCH),
    Field("context", CONTEXT),
    Field("preconditions", free),
    Field("cel_preconditions", list_of(CEL_CONDITION)),
    Field("image_extractors", _plain_extractors),
    Field("report_properties", map_of(text)),
    Field("skip_background_requests", boolean),
    Field("validate", VALIDATE),
    Field("mutate", MUTATE),
    Field("generate", GENERATE),
    Field("verify_images", list_of(VERIFY_IMAGES)),
    check=_one_action,
    extras=("path", "raw"),
)

RULE_V2BETA1 = RULE.replacing(
    Field("match", MATCH_WITHOUT_FLAT, required=True),
    Field("exclude", MATCH_WITHOUT_FLAT),
    Field("validate", VALIDATE.without("allowExistingViolations")),
    Field("verify_images", list_of(VERIFY_IMAGES_WITHOUT_LEGACY.without("cosignOCI11"))),
)
