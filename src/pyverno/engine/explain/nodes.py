"""The nodes of a trace: one type for each form of test in a rule, as values that are safe to print.

`place` is the path inside the rule (`("validate", "pattern", "spec")`), or inside the document for policies in CEL;
`path` is the path inside the object. A node holds what it decided; the values that it compared are `Shown` or `Hidden`.
"""

from __future__ import annotations

from typing import TypeAlias

from pyverno.engine.result import RuleResult
from pyverno.engine.rule import RuleInfo
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass, fields, is_dataclass

__all__ = [
    "BlockNode",
    "CheckNode",
    "ConditionNode",
    "ConditionsNode",
    "ContextNode",
    "ControlNode",
    "EffectNode",
    "ElementNode",
    "ExceptionNode",
    "ExpressionNode",
    "FieldNode",
    "FieldPath",
    "ForeachNode",
    "GroupNode",
    "Held",
    "Hidden",
    "MatchNode",
    "Node",
    "OmittedNode",
    "PartNode",
    "PatchNode",
    "PatternNode",
    "RuleTrace",
    "Shown",
    "to_json",
]

FieldPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A value that may be printed."""

    value: JSON


@dataclass(frozen=True, slots=True)
class Hidden:
    """A value that is named and not held: `source` is where it came from (`apiCall`, `Secret`)."""

    source: str


Held: TypeAlias = Shown | Hidden


@dataclass(frozen=True, slots=True)
class FieldNode:
    """One field of a match block: whether it fits, and if not, why."""

    field: str
    holds: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BlockNode:
    """One block of match or exclude; it fits when all of its fields do."""

    place: FieldPath
    holds: bool
    children: tuple[FieldNode, ...] = ()


@dataclass(frozen=True, slots=True)
class MatchNode:
    """Whether a matcher selects the request; `reason` is why not. `role` is `rule`, `exception` or `binding`."""

    role: str
    place: FieldPath
    matched: bool
    reason: str = ""
    children: tuple[BlockNode, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextNode:
    """A context entry that was loaded: its kind (`configMap`, `apiCall`), and its value or its error."""

    place: FieldPath
    name: str
    source: str
    value: Held | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ConditionNode:
    """One condition: both sides as written and as they were, and whether it held; None when it ended with an error.

    `reads` are the texts of the variables of both sides, and of those that they are made of.
    """

    place: FieldPath
    key_text: JSON
    operator: str
    value_text: JSON
    key: Held | None = None
    value: Held | None = None
    holds: bool | None = None
    error: str = ""
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupNode:
    """A map of `any` and `all`; `has_any` means that an `any` is written, which needs one condition that holds."""

    place: FieldPath
    met: bool | None
    has_any: bool
    children: tuple[ConditionNode, ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionsNode:
    """All conditions of one place: met when every group is, and every condition of a bare list."""

    place: FieldPath
    met: bool | None
    error: str = ""
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class PatternNode:
    """One part of a pattern on one part of the object.

    `part` is `map`, `list`, `value`, or `key` for a key of a map with its `anchor` (`=`, `X`, ... or ""). `outcome` is
    `pass`, `fail` or `skip` ("does not apply"); `cause` is the reason, in the words of the pattern language. `absent`
    are condition and existence keys that no map had so far: a pattern that fails while some are left is an error.
    """

    part: str
    path: FieldPath
    outcome: str
    cause: str = ""
    key: str = ""
    anchor: str = ""
    is_present: bool = True
    wanted: Held | None = None
    found: Held | None = None
    absent: tuple[str, ...] = ()
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class ElementNode:
    """One element of a foreach."""

    index: int
    value: Held
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeachNode:
    """The list of a foreach: its query, and how many elements it has or why it could not be evaluated."""

    place: FieldPath
    list: str
    count: int | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class PartNode:
    """A sub-expression of CEL: offset and text, and its value or error."""

    offset: int
    text: str
    value: Held | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ExpressionNode:
    """A CEL expression: its value or error, the sub-expressions that ran, and the variables they computed.

    `reads` are the fields of the object that it names, `*` for every item of a list that it runs through; `constants`
    are the values that it names.
    """

    place: FieldPath
    text: str
    value: Held | None = None
    error: str = ""
    reads: tuple[FieldPath, ...] = ()
    constants: tuple[JSON, ...] = ()
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlNode:
    """One check of the Pod Security Standards; `fields` are the paths at fault, as the message names them."""

    check: str
    control: str
    allowed: bool
    reason: str = ""
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExceptionNode:
    """A PolicyException that names the rule, and whether it applies."""

    key: str
    applies: bool | None
    error: str = ""
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchNode:
    """The change of the object by a rule, as JSON patch operations."""

    operations: tuple[JSONObject, ...]


@dataclass(frozen=True, slots=True)
class EffectNode:
    """The effect of a rule on another object: `create`, `patch` or `delete`."""

    action: str
    target: str


@dataclass(frozen=True, slots=True)
class CheckNode:
    """An action at work (`pattern`, `deny`, ...): the statuses and messages that it returned."""

    kind: str
    place: FieldPath
    statuses: tuple[str, ...]
    message: str = ""
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class OmittedNode:
    """Placeholder for parts that do not fit into a trace."""

    count: int


Node: TypeAlias = (
    MatchNode
    | BlockNode
    | FieldNode
    | ContextNode
    | ConditionNode
    | GroupNode
    | ConditionsNode
    | PatternNode
    | ForeachNode
    | ElementNode
    | ExpressionNode
    | PartNode
    | ControlNode
    | ExceptionNode
    | PatchNode
    | EffectNode
    | CheckNode
    | OmittedNode
)


@dataclass(frozen=True, slots=True)
class RuleTrace:
    """Everything that one rule did for one request: what it looked at, in order, and its results.

    `is_old` marks the evaluation of the object as it was before an update (`allowExistingViolations`).
    """

    rule: RuleInfo
    matched: bool
    reason: str = ""
    children: tuple[Node, ...] = ()
    results: tuple[RuleResult, ...] = ()
    is_old: bool = False

    def walk(self) -> tuple[Node, ...]:
        """Return every node, parents before children."""
        found: list[Node] = []
        pending: list[Node] = list(reversed(self.children))
        while pending:
            node = pending.pop()
            found.append(node)
            pending.extend(reversed(getattr(node, "children", ())))
        return tuple(found)


def to_json(node: object) -> JSON:
    """Return a node as JSON: its type under `node`, its fields by name, empty ones left out.

    >>> to_json(FieldNode("kinds", True))
    {'node': 'field', 'field': 'kinds', 'holds': True}
    """
    if isinstance(node, Shown):
        return {"value": node.value}
    if isinstance(node, Hidden):
        return {"hidden": node.source}
    if isinstance(node, tuple):
        return [to_json(each) for each in node]
    if not is_dataclass(node):
        return node
    found: JSONObject = {"node": type(node).__name__.removesuffix("Node").lower()}
    for each in fields(node):
        value = getattr(node, each.name)
        if value is not None and value not in ("", ()):
            found[each.name] = to_json(value)
    return found
