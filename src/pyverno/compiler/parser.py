"""The parser of one policy: templates, expressions and conditions, each compiled once, with all errors collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyverno.errors import ExpressionError, ExpressionSyntaxError, Location, PolicyError
from pyverno.kube.json import JSON
from pyverno.kube.yaml.documents import find_value
from pyverno.kube.yaml.fieldpath import Path, Place, Source, locate, path_text
from pyverno.lang.template import DataMark, Surroundings, Template, compile_template
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.engine.rules.conditions import Conditions
    from pyverno.engine.rules.guards import Preconditions
    from pyverno.lang.template.expression_text import ExpressionText
    from pyverno.lang.template.template import TemplateProblem

__all__ = ["Parser", "lower_conditions", "lower_preconditions", "place_of"]


_SUBSTITUTED_AS_A_WHOLE = (("apiCall",), ("globalReference",))
"""Context entries of whose other kinds each field is substituted by itself."""


@dataclass(slots=True)
class Parser:
    """Parses the expressions of one policy and collects what does not parse.

    `data` names the context variables of the present rule whose values come from the request.
    """

    source: Source
    errors: list[PolicyError] = field(default_factory=list)
    exact: dict[tuple[str, str], Location] = field(default_factory=dict)
    data: frozenset[str] = frozenset()

    def template(
        self, document: JSON, path: Path, within: Surroundings | None = None, mark: DataMark | None = None
    ) -> Template:
        """Compile a document with variables that is at `path`; references look at what it is `within`."""
        template = compile_template(document, path=place_of(path), within=within, mark=mark)
        for error in template.errors:
            self.report_problem(error, path)
        return template

    def optional(self, document: JSON, path: Path) -> Template | None:
        """Compile a document that may not be written."""
        return None if document is None or document == "" else self.template(document, path)

    def query(self, text: str, path: Path) -> ExpressionText | None:
        """Compile a JMESPath text; None when it is not written or does not parse (which is reported)."""
        if not text:
            return None
        # imported here and below, because many rules have neither expressions, conditions nor a context
        from pyverno.lang.template.expression_text import compile_expression_text

        try:
            return compile_expression_text(text)
        except ExpressionSyntaxError as error:
            message = f"failed to parse JMESPath {text}: {error.message}"
            self.report(message, path, code="expression-syntax", offset=self.offset_in(text, path, error.offset))
            return None

    def offset_in(self, text: str, path: Path, offset: int) -> int | None:
        """Return an offset of a text where the text is all that is at a path, None for parts and copies."""
        return offset if find_value(self.source.value, path) == text else None

    def report_problem(self, problem: TemplateProblem, path: Path) -> None:
        """Note a problem of a template that is at a path."""
        where = path_text(path)
        code = "expression-syntax"
        place = Place((*path, *problem.steps), problem.text, problem.offset, problem.in_key)
        if problem.offset is None or (find_value(self.source.value, place.path) != problem.text and not problem.in_key):
            return self.report(problem.message, path, code=code)  # a copy, or no text
        location = place.location(self.source)
        self.exact.setdefault((where, code), location)
        self.errors.append(PolicyError(problem.message, location=location, path=where, code=code))
        return None

    def is_reported(self, path: Path, code: str) -> bool:
        """Return whether a problem of a character in the text at the path has been noted."""
        return (path_text(path), code) in self.exact

    def report(self, message: str, path: Path, *, code: str, offset: int | None = None, hint: str = "") -> None:
        """Note one problem at a place of the policy; `offset` is that of a character in the text at the path."""
        where = path_text(path)
        # a copy by autogen is wrong at the same place, but its text is another
        location = self.exact.get((where, code)) or locate(self.source, path, offset=offset)
        if offset is not None:
            self.exact[where, code] = location
        self.errors.append(PolicyError(message, location=location, path=where, code=code, hint=hint))


def place_of(path: Path) -> str:
    """Return the path inside a rule: templates name places by it (`/mutate/patchStrategicMerge`)."""
    inside = path[3:] if path[:2] == ("spec", "rules") else path
    if "context" in inside:  # Kyverno: the places of an entry begin inside of it
        entry = inside[inside.index("context") + 2 :]
        return "".join(f"/{step}" for step in entry[1 if entry[:1] in _SUBSTITUTED_AS_A_WHOLE else 2 :])
    if inside[:2] == ("mutate", "foreach"):  # Kyverno: the places of an entry begin with the entry
        inside = inside[3:]
        while inside[:1] == ("foreach",):
            inside = inside[2:]
    return "".join(f"/{step}" for step in inside)


def lower_preconditions(conditions: JSON, parser: Parser, path: Path) -> Preconditions | None:
    """Compile preconditions; None when there are none or they do not compile (which is reported)."""
    compiled = lower_conditions(conditions, parser, path)
    if compiled is None:
        return None
    from pyverno.engine.rules.guards import Preconditions

    return Preconditions(compiled)


def lower_conditions(
    conditions: JSON, parser: Parser, path: Path, *, blocks: bool = False, excuse: bool = False
) -> Conditions | None:
    """Compile conditions; None when there are none or they do not compile (which is reported).

    `blocks` reads a list as any/all blocks (exceptions) and not as legacy conditions; `excuse` is for conditions that
    let an object pass when they hold.
    """
    if conditions is None or conditions in ([], {}):
        return None
    from pyverno.engine.rules.conditions import compile_conditions

    try:
        return compile_conditions(conditions, blocks=blocks, data=parser.data, excuse=excuse)
    except ExpressionError as error:
        parser.report(error.message, path, code="conditions")
        return None
