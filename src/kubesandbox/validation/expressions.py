"""CEL of admission: whether expressions of webhooks and admission policies compile, in the API server's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubesandbox.objects.fielderrors import duplicate, invalid, required, too_many
from kubesandbox.validation.check import Errors
from kubesandbox.validation.names import Form
from kubesandbox.validation.results import Result
from pyverno.compiler.cel.environment import CelCompiler
from pyverno.compiler.parser import Parser
from pyverno.errors import Location
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.cel import CompileError, types
from pyverno.lang.cel.libraries.authorizer import AUTHORIZER_NAMES
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.cel.types import Type, list_of, struct
from pyverno.policy.validate import NamedExpression

__all__ = ["Expressions", "match_conditions"]

_MAX_CONDITIONS = 64
_TYPES: Mapping[Result, tuple[Type, ...]] = {
    Result.CONDITION: (types.BOOL,),
    Result.MESSAGE: (types.STRING,),
    Result.ANNOTATION: (types.STRING, types.NULL),
    Result.CONFIGURATION: (struct("Object"),),
    Result.PATCH: (list_of(struct("JSONPatch")),),
}


@dataclass(frozen=True, slots=True)
class _NoFile:
    """The source of expressions without a file."""

    value: JSON = field(default_factory=dict)
    file: str = "-"

    def location(self, path: object = (), *, key: bool = False) -> Location:
        return Location(self.file)


class Expressions:
    """The expressions of one policy; variables are known to what comes after them."""

    def __init__(self, version: tuple[int, int], *, has_params: bool = False, mutation: bool = False) -> None:
        names: dict[str, Type] = dict(AUTHORIZER_NAMES)
        if has_params:
            names["params"] = types.DYN
        environment = kubernetes_environment(version, mutation=mutation)
        self._compiler = CelCompiler(environment, Parser(_NoFile()), names=names)

    def check(self, text: str, path: str, errors: Errors, *, expected: Result | None = None) -> None:
        """Add an error when an expression does not compile, or not to what is expected."""
        try:
            found = self._compiler.environment.check(text).type
        except CompileError as error:
            errors.append(invalid(path, text, f"compilation failed: {error}"))
            return
        wanted = _TYPES[expected] if expected is not None else ()
        if wanted and found not in wanted:
            # Kubernetes: what is known only when it runs is not enough
            names = [_format_type(each) for each in wanted]
            told = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
            errors.append(invalid(path, text, f"must evaluate to {told} but got {_format_type(found)}"))

    def declare(self, name: str, text: str) -> None:
        """Make a variable known; one that does not compile stays unknown."""
        self._compiler.variables((NamedExpression(name, text),))


def _format_type(found: Type) -> str:
    return "null_type" if found == types.NULL else str(found)


def match_conditions(value: JSON, path: str, errors: Errors, expressions: Expressions, form: Form) -> None:
    """Check the match conditions of a webhook or policy."""
    conditions: list[JSONObject] = value or []
    if len(conditions) > _MAX_CONDITIONS:
        errors.append(too_many(path, len(conditions), _MAX_CONDITIONS))
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        place, name = f"{path}[{index}]", str(condition.get("name") or "")
        text = str(condition.get("expression") or "").strip()
        if not text:
            errors.append(required(f"{place}.expression"))
        else:
            expressions.check(text, f"{place}.expression", errors, expected=Result.CONDITION)
        if not name:
            errors.append(required(f"{place}.name"))
        else:
            errors.extend(invalid(f"{place}.name", name, problem) for problem in form(name))
            if name in names:
                errors.append(duplicate(f"{place}.name", name))
        names.add(name)
