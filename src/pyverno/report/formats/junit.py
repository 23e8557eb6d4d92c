"""Rows of results as JUnit XML, which build servers read.

The layout is that of Kyverno's command line, well-formed and escaped (upstream is neither).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyverno.report.packed import Packed
from pyverno.report.problem import Problem
from pyverno.sinks.markup import xml_attribute, xml_text
from pyverno.value import dataclass

__all__ = ["Case", "WrittenCase", "junit", "write_case"]


@dataclass(frozen=True, slots=True)
class Case:
    """One row: a policy's rule on a resource; `outcome` and `reason` as in the table (`Fail`, `Resource diff`).

    `has_message` is False where the format leaves the message out.
    """

    policy: str
    rule: str
    resource: str
    outcome: str
    reason: str = ""
    message: str = ""
    is_failure: bool = False
    is_error: bool = False
    has_message: bool = True


_INPUT = "pyverno"


class WrittenCase(NamedTuple):
    """A case as XML, and what its suite counts."""

    policy: str
    text: str
    is_failure: bool
    is_error: bool


class _Suite:
    """The cases of a policy, and their numbers."""

    __slots__ = ("cases", "errors", "failures")

    def __init__(self) -> None:
        self.cases = Packed()
        self.failures = self.errors = 0


def junit(cases: Iterable[WrittenCase], problems: Sequence[Problem] = ()) -> Iterator[str]:
    """Yield one document with a suite per policy, in the order in which policies first appear.

    Problems of the run are errors of a suite of their own, which comes first.

    >>> print(*junit([write_case(Case("p", "r", "v1/Pod/default/a", "Pass", "Ok"))]), sep="", end="")
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites tests="1" failures="0" errors="0">
      <testsuite name="p" tests="1" failures="0" errors="0">
        <testcase classname="r" name="v1/Pod/default/a">
          <system-out>Reason: Ok
    Policy: p
    Rule: r
    Resource: v1/Pod/default/a
    Message: </system-out>
        </testcase>
      </testsuite>
    </testsuites>
    """
    suites: dict[str, _Suite] = {}
    for case in cases:
        suite = suites.setdefault(case.policy, _Suite())
        suite.cases.add(case.text)
        suite.failures += case.is_failure
        suite.errors += case.is_error
    more = len(problems)
    tests, failures, errors = (
        sum(len(each.cases) for each in suites.values()) + more,
        sum(each.failures for each in suites.values()),
        sum(each.errors for each in suites.values()) + more,
    )
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {_counts(tests, failures, errors)}>\n'
    if problems:
        yield f"  <testsuite name={xml_attribute(_INPUT)} {_counts(more, 0, more)}>\n"
        yield from (f"{line}\n" for problem in problems for line in _input_error(problem))
        yield "  </testsuite>\n"
    for policy, own in suites.items():
        yield f"  <testsuite name={xml_attribute(policy)} {_counts(len(own.cases), own.failures, own.errors)}>\n"
        yield from own.cases
        yield "  </testsuite>\n"
    yield "</testsuites>\n"


def _counts(tests: int, failures: int, errors: int) -> str:
    return f'tests="{tests}" failures="{failures}" errors="{errors}"'


def _input_error(problem: Problem) -> list[str]:
    where = str(problem.location) or "input"
    return [
        f"    <testcase classname={xml_attribute(problem.code)} name={xml_attribute(where)}>",
        f"      <error message={xml_attribute(problem.message)} type={xml_attribute(problem.code)}/>",
        "    </testcase>",
    ]


def write_case(case: Case) -> WrittenCase:
    """Return one case as an element."""
    return WrittenCase(case.policy, "".join(f"{line}\n" for line in _case(case)), case.is_failure, case.is_error)


def _case(case: Case) -> list[str]:
    lines = [f"    <testcase classname={xml_attribute(case.rule)} name={xml_attribute(case.resource)}>"]
    message = {"Message": case.message} if case.has_message else {}
    if case.is_failure or case.is_error:
        text = _fields(Policy=case.policy, Rule=case.rule, Resource=case.resource, Result=case.outcome, **message)
        element = "error" if case.is_error else "failure"
        lines.append(f"      <{element} message={xml_attribute(case.reason)}>{text}</{element}>")
    else:
        text = _fields(Reason=case.reason, Policy=case.policy, Rule=case.rule, Resource=case.resource, **message)
        lines.append(f"      <system-out>{text}</system-out>")
    lines.append("    </testcase>")
    return lines


def _fields(**fields: str) -> str:
    return xml_text("\n".join(f"{name}: {value}" for name, value in fields.items()))
