"""The two sides of a condition, and which of them can hold patterns."""

from __future__ import annotations

import re
from typing import Final

from pyverno.compiler.migration.expressions import is_static
from pyverno.compiler.migration.expressions.names import Names
from pyverno.compiler.migration.expressions.value import Value
from pyverno.compiler.migration.expressions.wildcards import computed_regex
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import Cel, CelType, Level, all_of, literal
from pyverno.engine.rules.conditions import has_own_wildcards, reads_data
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.template.syntax import outer_variables, split_variables
from pyverno.value import dataclass

__all__ = ["DURATION", "NUMBER", "Operands", "fits_pattern", "is_duration", "is_number", "is_plain_name"]

DURATION: Final = r"^[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"
NUMBER: Final = r"(?i)^([-+]?((\d(_?\d)*\.?(\d(_?\d)*)?|\.\d(_?\d)*)(e[-+]?\d(_?\d)*)?|inf(inity)?)|nan)$"
"""Numbers as Go reads them from text, without hexadecimal ones."""


_NAMES: Final = frozenset({"name", "namespace", "serviceAccountName", "nodeName", "generateName", "storageClassName"})
_FIXED: Final = frozenset(
    {
        "accessModes",
        "policyTypes",
        "tolerations",
        "imagePullPolicy",
        "type",
        "protocol",
        "operation",
        "kind",
        "restartPolicy",
    }
)
_LABELS: Final = frozenset({"labels", "matchLabels", "nodeSelector"})


@dataclass(frozen=True, slots=True, eq=False)
class Operands:
    """Key and value of a condition; `path` is that of the condition.

    `value_is_pattern` means that texts of the value are wildcards for the negated operators, `own_pattern` is
    the value as written, if it has wildcards beside variables that certainly have none.
    """

    key: Value
    value: Value
    is_key_static: bool
    value_is_pattern: bool
    names: Names
    path: str
    own_pattern: str = ""

    @classmethod
    def of(cls, written: JSONObject, key: Value, value: Value, names: Names, path: str) -> Operands:
        """Return the operands of a condition as written."""
        is_key_static, is_value_static = is_static(written.get("key")), is_static(written.get("value"))
        # texts of the policy are patterns, texts of the request are data
        text = written.get("value")
        is_own = not is_value_static and isinstance(text, str) and has_own_wildcards(text, split_variables(text))
        own = str(text) if is_own else ""
        is_pattern = is_value_static or (not is_key_static and (is_own or not _reads_request(text, names)))
        return cls(key, value, is_key_static, is_pattern, names, path, own)

    def refuse(self, code: str, reason: str, advice: str = "write the condition by hand") -> UnconvertibleError:
        """Return the error for a condition that has no form."""
        return UnconvertibleError(code, self.path, reason, advice)

    def known(self, value: Value, shape: Shape) -> Value:
        """Return a side as one of a type that the other side shows, with a note, where no schema knows it."""
        if value.shape is not Shape.ANY:
            return value
        kind = {Shape.STRING: "a text", Shape.INT: "a number", Shape.LIST: "a list"}.get(shape, shape.value)
        self.names.note(
            "assumed-type", self.path, f"no schema is known for `{value.cel.text}`: the rule compares it as {kind}"
        )
        return value.as_type(shape)


def _reads_request(written: JSON, names: Names) -> bool:
    match written:
        case str():
            data = {path[0] for path, value in names.values.items() if len(path) == 1 and value.is_data}
            return any(reads_data(text, data) for text in outer_variables(written))
        case list():
            return any(_reads_request(each, names) for each in written)
    return False


def is_plain_name(value: Value) -> bool:
    """Return whether an admitted object certainly has no `*` or `?` in a text: names, labels, fixed words."""
    if value.schema.enum or value.is_constant:
        return True
    if value.cel.text.startswith("request."):
        return value.cel.level is not Level.SUM  # and no text with more around the field
    if value.sequence is not None:
        return is_plain_name(value.sequence.element) or value.sequence.loops[-1].is_map
    reference = value.reference
    if reference is None and value.default is not None:
        return is_plain_name(value.default[0])
    if reference is None:
        text = value.cel.text
        last = re.split(r"[.?\[\]']+", text.strip("'])?"))[-1]
        return last in _FIXED and "(" not in text
    steps = [step.name for step in reference.steps]
    if not steps:
        return False
    return steps[-1] in _FIXED or (len(steps) > 1 and steps[-2] in _LABELS) or steps[-1] in _NAMES


def is_duration(text: Cel) -> Cel:
    """Return whether a text is a duration as Go writes them."""
    return text.method("matches", literal(DURATION), returns=CelType.BOOL)


def is_number(text: Cel) -> Cel:
    """Return whether a text is a decimal number."""
    return text.method("matches", literal(NUMBER), returns=CelType.BOOL)


def fits_pattern(text: Cel, pattern: Cel) -> Cel:
    """Return whether a text fits a wildcard that is only known at run time."""
    plain = pattern.method("contains", literal("\\"), returns=CelType.BOOL).not_()
    fits = Cel(f"{text.within(Level.PRIMARY)}.matches({computed_regex(pattern)})", CelType.BOOL)
    return all_of([plain, fits])
