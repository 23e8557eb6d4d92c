"""Rows of results as JUnit XML, which build servers read.

The geometry is that of Kyverno's command line, well-formed and escaped (upstream is neither).
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["Case", "junit"]

# what XML 1.0 cannot hold, however it is written
_FORBIDDEN = regex("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Case:
    """One row: a policy's rule on a resource; `outcome` and `reason` as in the table (`Fail`, `Resource diff`)."""

    policy: str
    rule: str
    resource: str
    outcome: str
    reason: str = ""
    message: str = ""
    is_failure: bool = False


def junit(cases: Iterable[Case]) -> str:
    """Return one document with a suite per policy, in the order in which policies first appear.

    >>> print(junit([Case("p", "r", "v1/Pod/default/a", "Pass", "Ok")]), end="")
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites tests="1" failures="0">
      <testsuite name="p" tests="1" failures="0">
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
    suites: dict[str, list[Case]] = {}
    for case in cases:
        suites.setdefault(case.policy, []).append(case)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {_counts(_all(suites))}>"]
    for policy, own in suites.items():
        lines.append(f"  <testsuite name={_attribute(policy)} {_counts(own)}>")
        lines += [line for case in own for line in _case(case)]
        lines.append("  </testsuite>")
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"


def _all(suites: dict[str, list[Case]]) -> list[Case]:
    return [case for own in suites.values() for case in own]


def _counts(cases: list[Case]) -> str:
    failures = sum(1 for case in cases if case.is_failure)
    return f'tests="{len(cases)}" failures="{failures}"'


def _case(case: Case) -> list[str]:
    lines = [f"    <testcase classname={_attribute(case.rule)} name={_attribute(case.resource)}>"]
    if case.is_failure:
        text = _fields(
            Policy=case.policy, Rule=case.rule, Resource=case.resource, Result=case.outcome, Message=case.message
        )
        lines.append(f"      <failure message={_attribute(case.reason)}>{text}</failure>")
    else:
        text = _fields(
            Reason=case.reason, Policy=case.policy, Rule=case.rule, Resource=case.resource, Message=case.message
        )
        lines.append(f"      <system-out>{text}</system-out>")
    lines.append("    </testcase>")
    return lines


def _fields(**fields: str) -> str:
    return escape(_clean("\n".join(f"{name}: {value}" for name, value in fields.items())))


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
