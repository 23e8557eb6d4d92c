"""The flags of `pyverno test` as one value, and the selector of test cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyverno.cli.registries import RegistryAccess
from pyverno.kube.wildcard import has_wildcard, match
from pyverno.offline.testfile import ExpectedResult
from pyverno.value import dataclass, field, replace

__all__ = ["DEFAULT_FILE", "FORMATS", "REPORT_FORMS", "Selector", "SuiteOptions", "parse_selector"]

DEFAULT_FILE = "kyverno-test.yaml"
FORMATS = ("json", "yaml", "markdown", "junit", "tap", "csv", "html")
"""Formats of the results beside the table."""

REPORT_FORMS = (".json", ".md", ".html")
"""Endings of the file of `--report`."""


@dataclass(frozen=True, slots=True)
class Selector:
    """Chooses rows: pairs of a key (policy, rule, resource) and a wildcard, all of which must match.

    >>> rows = [ExpectedResult("p", "pass", rule="r", resources=("a", "b"))]
    >>> [row.resources for row in Selector((("rule", "r*"), ("resource", "b"))).select(rows)]
    [('b',)]
    """

    terms: tuple[tuple[str, str], ...] = ()

    def select(self, rows: Iterable[ExpectedResult]) -> tuple[ExpectedResult, ...]:
        """Return the rows that match, each with no other resources than the selected ones."""
        return tuple(self._narrowed(row) for row in rows if all(_FITS[key](row, wanted) for key, wanted in self.terms))

    def _narrowed(self, row: ExpectedResult) -> ExpectedResult:
        wanted = [value for key, value in self.terms if key == "resource" and value != "*"]
        if not wanted:
            return row
        # Kyverno puts a wildcard in place of the names, so that it fits none of them and all resources are taken
        named = [name for name in row.resources if any(match(value, name) for value in wanted)]
        literal = [value for value in wanted if not has_wildcard(value)]
        return replace(row, resources=tuple(dict.fromkeys((*literal, *named))))


def _fits_resource(row: ExpectedResult, wanted: str) -> bool:
    return not row.resources or any(match(wanted, name) for name in row.resources)


_FITS: dict[str, Callable[[ExpectedResult, str], bool]] = {
    "policy": lambda row, wanted: match(wanted, row.policy),
    "rule": lambda row, wanted: not row.rule or match(wanted, row.rule),
    "resource": _fits_resource,
}


def parse_selector(text: str) -> tuple[Selector, tuple[str, ...]]:
    """Read `policy=P,rule=R,resource=S`; returns the selector and an error for every part that is ignored.

    >>> parse_selector("policy=a*, colour=red")[1]
    ('invalid test-case-selector ` colour=red`: the key must be one of policy, rule, resource',)
    """
    terms: list[tuple[str, str]] = []
    errors: list[str] = []
    for part in text.split(",") if text else ():
        key, separator, value = part.partition("=")
        if not separator or "=" in value:
            errors.append(f"invalid test-case-selector `{part}`: expected KEY=VALUE")
        elif key.strip() not in _FITS:
            errors.append(f"invalid test-case-selector `{part}`: the key must be one of {', '.join(_FITS)}")
        else:
            terms.append((key.strip(), value.strip()))
    return Selector(tuple(terms)), tuple(errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOptions:
    """All flags; names as on the command line. `workers` is a number of processes."""

    sources: Sequence[str] = ()
    file_name: str = DEFAULT_FILE
    git_branch: str = ""
    selector: Selector = field(default_factory=Selector)
    selector_errors: tuple[str, ...] = ()
    output_format: str = ""
    fail_only: bool = False
    remove_color: bool = False
    detailed_results: bool = False
    require_tests: bool = False
    allow_empty: bool = False
    strict: bool = False
    coverage: bool = False
    mutate: bool = False
    max_mutants: int = 0
    seed: int = 0
    fail_under: int = 0
    report: str = ""
    write: bool = False
    watch: bool = False
    workers: int = 1
    registry: RegistryAccess | None = None
    dns: bool = False

    @property
    def needs_rows(self) -> bool:
        """Whether a run that checks no row fails."""
        return not self.allow_empty or self.require_tests or self.strict or bool(self.fail_under)
