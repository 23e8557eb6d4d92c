"""The output of `pyverno analyze`: findings with their objects, costs of rules, a summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.cli.analyze.options import AnalyzeOptions
from pyverno.compiler.analysis.cost import RuleCost
from pyverno.compiler.analysis.finding import Finding, Witness
from pyverno.compiler.analysis.registry import CHECKS, find_check
from pyverno.compiler.analysis.workspace import Workspace
from pyverno.compiler.equivalence.shrinking import bare
from pyverno.engine.result import ResourceRef
from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject, encode, encode_indent
from pyverno.kube.patch.jsondiff import create_patch
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.spelling import did_you_mean

__all__ = ["describe_check", "list_checks", "render"]


def render(options: AnalyzeOptions, workspace: Workspace, found: Sequence[Finding], costs: Sequence[RuleCost]) -> str:
    """Return findings and costs in the format of the options."""
    if options.form == "text":
        lines = [line for each in found for line in _finding_lines(each, workspace, quiet=options.quiet)]
        lines += _cost_lines(costs)
        lines += _left_out_lines(workspace)
        if not options.quiet:
            lines.append(_summary(workspace, len(found)))
        return "".join(f"{line}\n" for line in lines)
    listing: JSONObject = {
        "findings": [dict(each.to_json()) for each in found],
        **({"costs": [each.to_json() for each in costs]} if options.costs else {}),
        "summary": {
            "policies": len(workspace.policies),
            "exceptions": len(workspace.exceptions),
            "objects": len(workspace.objects),
            "seed": options.seed,
            "kubeVersion": options.kube_version,
            **({"leftOut": left_out} if (left_out := _left_out(workspace)) else {}),
        },
    }
    return encode_indent(listing, escape_html=False) + "\n" if options.form == "json" else dump_yaml(listing)


def _finding_lines(finding: Finding, workspace: Workspace, *, quiet: bool) -> Iterator[str]:
    seen = finding.observation
    yield f"{seen.location}: {finding.code} {seen.message}"
    for witness in () if quiet else seen.witnesses:
        yield from _witness_lines(witness, workspace)


def _witness_lines(witness: Witness, workspace: Workspace) -> Iterator[str]:
    """Yield an object without the fields of an API server, and the changes and objects that rules made of it."""
    results = ", ".join(f"{rule}: {status}" for rule, status in witness.results)
    yield f"  {witness.text}" + (f" ({results})" if results else "")
    yield from _indent(dump_yaml(bare(workspace.population.admit, witness.resource)))
    before = witness.resource
    for body in witness.after:
        if ResourceRef.of(before) == ResourceRef.of(body):
            yield "  then changed by"
            yield from (f"    {encode(change)}" for change in create_patch(before, body))
        else:
            yield "  then"
            yield from _indent(dump_yaml(bare(workspace.population.admit, body)))
        before = body


def _left_out(workspace: Workspace) -> list[JSONObject]:
    """Return the checks that did not try everything they could, with the numbers."""
    return [
        {"code": code, "possible": sample.possible, "tried": sample.tried}
        for code, sample in workspace.samples.items()
        if sample.tried < sample.possible
    ]


def _left_out_lines(workspace: Workspace) -> Iterator[str]:
    for each in _left_out(workspace):
        numbers = f"tried {each['tried']} of {each['possible']} pairs of rules"
        yield f"{each['code']}: {numbers}; analyze fewer policies at once to try all"


def _indent(text: str) -> Iterator[str]:
    return (f"    {line}" for line in text.rstrip().split("\n"))


def _cost_lines(costs: Sequence[RuleCost]) -> Iterator[str]:
    if costs:
        yield f"{'steps (most)':>12}  {'steps (mean)':>12}  {'objects':>7}  rule"
    for each in costs:
        yield f"{each.most:>12}  {each.mean:>12}  {each.objects:>7}  {each.rule}"


def _summary(workspace: Workspace, found: int) -> str:
    policies, objects = len(workspace.policies), len(workspace.objects)
    what = f"{policies} {'policy' if policies == 1 else 'policies'}, {objects} objects"
    return f"Found {found} problem{'s' * (found != 1)} in {what}." if found else f"No problems found in {what}."


def list_checks() -> Iterator[str]:
    """Yield a line with the code, severity, name and summary of every check."""
    for check in CHECKS:
        summary = check.documentation.partition("\n")[0].rstrip(".")
        yield f"{check.code}  {check.severity:<7}  {check.name:<20}  {summary}\n"


def describe_check(word: str) -> str:
    """Return the documentation of a check; raises UsageError for an unknown code or name."""
    check = find_check(word)
    if check is None:
        names = tuple(name for each in CHECKS for name in (each.code, each.name))
        raise UsageError(f"there is no check `{word}`{did_you_mean(word, names)}")
    return f"{check.code} {check.name} ({check.severity})\n\n{check.documentation}\n"
