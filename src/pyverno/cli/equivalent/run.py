"""The work of `pyverno equivalent`: compile both sides, search, print a difference or the record of the search."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import orjson

from pyverno.cli.equivalent.admission import admission_of
from pyverno.cli.migrate.certificate import host_of, raw_differences
from pyverno.cli.progress import tracked
from pyverno.cli.terminal import STDERR, STDOUT
from pyverno.compiler import compile_documents
from pyverno.compiler.equivalence.case import Case
from pyverno.compiler.equivalence.circumstances import ALICE
from pyverno.compiler.equivalence.compare import Comparison, Counterexample, Pair, compare
from pyverno.compiler.equivalence.coverage import BranchCoverage, branch_coverage
from pyverno.compiler.equivalence.outcome import Outcome
from pyverno.compiler.equivalence.vocabulary import Vocabulary, vocabulary_of
from pyverno.compiler.migration.inference import known_definitions
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation
from pyverno.errors import PyvernoError, UsageError, raise_all
from pyverno.kube.json import JSONObject, encode, encode_indent, equal
from pyverno.kube.yaml.documents import Document
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.files import read_file
from pyverno.offline.host import OfflineHost
from pyverno.offline.manifests import load_manifests
from pyverno.offline.policies import load_policy_documents
from pyverno.offline.resources import read_objects
from pyverno.report.explanation import NO_PLACES, rule_lines
from pyverno.sinks.records import json_text
from pyverno.value import dataclass, replace
from pyverno.version import __version__

__all__ = ["EquivalentOptions", "run_equivalent"]

_MOST_MISSED: Final = 5
_MOST_RULES: Final = 3
_SAME, _DIFFERENT, _BLIND, _UNUSABLE = 0, 1, 2, 3
_OPERATIONS: Final = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivalentOptions:
    """All flags of the command."""

    old: str
    new: str
    objects: int = 2000
    seed: int = 1
    resources: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    other_kinds: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    crds: tuple[str, ...] = ()
    kube_version: str = "1.35"
    form: str = "text"
    certificate: str = ""
    check: str = ""


@dataclass(frozen=True, slots=True)
class _Side:
    """One side: where it was read, its documents, its engine."""

    source: str
    documents: tuple[JSONObject, ...]
    engine: Engine

    @property
    def digest(self) -> str:
        """A hash of the policies' content, which layout and comments do not change."""
        return hashlib.sha256("\n".join(sorted(encode(each) for each in self.documents)).encode()).hexdigest()


def run_equivalent(options: EquivalentOptions) -> int:
    """Run the command and return its exit code; raises UsageError for unreadable input."""
    try:
        first, second = _side(options.old), _side(options.new)
        if options.check:
            return _check(options, first, second)
        seeds = [each.value for each in _seeds(options.resources)]
        operations = _operations(options.operations)
        documents = (*first.documents, *second.documents)
        definitions = known_definitions(documents, [each.value for each in _seeds(options.crds)], seeds)
        vocabulary = _vocabulary(options, documents, definitions)
        admit = admission_of(options.kube_version, definitions)
        host = host_of(documents, vocabulary, admit, seeds)
        first, second = (replace(side, engine=Engine(side.engine.policies, host)) for side in (first, second))
    except PyvernoError as error:
        STDERR.write(f"Error: {error}\n")
        return _UNUSABLE
    comparison = compare(
        Pair(first.engine, second.engine, admit),
        vocabulary,
        seeds=seeds,
        count=options.objects,
        seed=options.seed,
        operations=operations,
        watched=lambda supply: tracked(supply, options.objects + len(seeds), "objects"),
    )
    branches = tuple(branch_coverage(side.engine, side.documents, comparison.sample) for side in (first, second))
    record = _record(options, first, second, comparison, branches)
    if options.certificate and comparison.counterexample is None:
        _write(options.certificate, json_text(encode_indent(record)) + "\n")
    STDOUT.write(_render(options, record, comparison, (first, second), branches))
    if comparison.counterexample is not None:
        return _DIFFERENT
    return _BLIND if comparison.blind else _SAME


def _side(source: str) -> _Side:
    loaded = load_policy_documents([source])
    raise_all(loaded.errors)
    compilation = compile_documents(loaded.documents)
    raise_all(compilation.errors)
    if not compilation.policies:
        raise UsageError(f"`{source}` holds no policy")
    policies = PolicySet(compilation.policies, compilation.exceptions, asks_all=True)
    return _Side(source, tuple(each.value for each in loaded.documents), Engine(policies, OfflineHost()))


def _seeds(sources: Sequence[str]) -> Sequence[Document]:
    loaded = load_manifests(sources)
    objects, errors = read_objects(loaded.documents)
    raise_all((*loaded.errors, *errors))
    return objects


def _vocabulary(
    options: EquivalentOptions, documents: Sequence[JSONObject], definitions: Sequence[JSONObject]
) -> Vocabulary:
    """Return the kinds and values of both sides, restricted to the chosen kinds; raises UsageError if none is left."""
    vocabulary = vocabulary_of(documents, definitions)
    kinds = tuple(
        info
        for info in vocabulary.kinds
        if (not options.kinds or info.kind in options.kinds) and info.kind not in options.other_kinds
    )
    if not kinds and not options.resources:
        matched = ", ".join(sorted({info.kind for info in vocabulary.kinds})) or "no kind of Kubernetes itself"
        raise UsageError(f"there is no kind to generate objects of; the policies match {matched}")
    subresources = tuple(
        (info, name)
        for info, name in vocabulary.subresources
        if info in kinds and f"{info.kind}/{name}" not in options.other_kinds
    )
    return replace(vocabulary, kinds=kinds, subresources=subresources)


def _operations(words: Sequence[str]) -> tuple[Operation, ...]:
    if not words:
        return (Operation.CREATE, Operation.UPDATE)
    known = {operation.value: operation for operation in _OPERATIONS}
    for word in words:
        if word not in known:
            raise UsageError(f'invalid argument "{word}" for "--operation" flag: expected {", ".join(known)}')
    return tuple(known[word] for word in words)


def _record(
    options: EquivalentOptions,
    first: _Side,
    second: _Side,
    comparison: Comparison,
    branches: Sequence[BranchCoverage],
) -> JSONObject:
    """Return the record of the comparison, so that it can be repeated and checked."""
    old, new = (
        {"source": side.source, "sha256": side.digest, "verdicts": _sort(verdicts), "branches": own.to_json()}
        for side, verdicts, own in zip((first, second), (comparison.first, comparison.second), branches, strict=True)
    )
    record: JSONObject = {
        "tool": f"pyverno {__version__}",
        "old": old,
        "new": new,
        "seed": options.seed,
        "objects": options.objects,
        "kubeVersion": options.kube_version,
        "inputs": dict(comparison.inputs),
        "requests": _sort(comparison.requests),
        "refusedByTheSchema": comparison.refused,
        **({"sameUpToOrder": comparison.reordered} if comparison.reordered else {}),
        **({"namesTwice": comparison.outside} if comparison.outside else {}),
        **raw_differences(comparison),
        "saysNothingBecause": list(comparison.blind) if comparison.counterexample is None else [],
        "result": "different" if comparison.counterexample is not None else "no difference found",
    }
    found = comparison.counterexample
    if found is not None:
        record["counterexample"] = {
            "difference": found.difference,
            "operation": found.operation.value,
            "resource": found.resource,
            **({"oldResource": found.old} if found.old is not None else {}),
            **_sender(found.case),
            "old": _outcome(found.first),
            "new": _outcome(found.second),
        }
    return record


def _sender(case: Case) -> JSONObject:
    """Return the user and the namespace of the request, as far as they differ from the defaults."""
    return {
        **({"subresource": case.subresource} if case.subresource else {}),
        **({"userInfo": case.user.to_json()} if case.user != ALICE else {}),
        **(
            {"roles": [*case.user.roles, *case.user.cluster_roles]}
            if case.user.roles or case.user.cluster_roles
            else {}
        ),
        **({"namespaceLabels": dict(case.labels)} if case.labels else {}),
    }


def _outcome(outcome: Outcome) -> JSONObject:
    return {"verdict": outcome.word, "messages": list(outcome.messages), "effects": list(outcome.effects)}


def _sort(counts: Mapping[str, int]) -> JSONObject:
    return dict(sorted(counts.items()))


def _render(
    options: EquivalentOptions,
    record: JSONObject,
    comparison: Comparison,
    sides: tuple[_Side, _Side],
    branches: Sequence[BranchCoverage],
) -> str:
    if options.form == "json":
        return encode_indent(record) + "\n"
    if options.form == "yaml":
        return dump_yaml(record, sort_keys=False)
    total = sum(comparison.requests.values())
    tried = f"{total} requests of {len(comparison.requests)} kinds and operations, seed {options.seed}"
    if comparison.counterexample is not None:
        return _difference(comparison.counterexample, *sides) + f"\nfound among {tried}\n"
    lines = [f"no difference found in {tried}"]
    lines += [f"  {name}: {count}" for name, count in sorted(comparison.requests.items())]
    for name, counts, own in zip(("old", "new"), (comparison.first, comparison.second), branches, strict=True):
        verdicts = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        lines.append(f"{name}: {verdicts}; {own.taken} of {own.total} branches")
        lines += [f"  no request took {text}" for text in own.missed[:_MOST_MISSED]]
        if len(own.missed) > _MOST_MISSED:
            lines.append(f"  and {len(own.missed) - _MOST_MISSED} more")
    if comparison.reordered:
        lines.append(f"{comparison.reordered} objects are left with containers, volumes or the like in another order")
    if comparison.raw_differences:
        counted = f"{comparison.raw_differences} of {comparison.raw_judged}"
        lines.append(
            f"{counted} objects are decided differently before an API server completes or refuses them, such as"
        )
        lines.append("  " + encode(comparison.raw))
    if comparison.outside:
        lines.append(f"{comparison.outside} objects are left out: a list such as env names an element twice")
    lines += [f"this says nothing: {reason}" for reason in comparison.blind]
    return "\n".join(lines) + "\n"


def _difference(found: Counterexample, first: _Side, second: _Side) -> str:
    lines = [f"the sides differ ({found.difference}) on {found.operation.value} of", dump_yaml(found.resource).rstrip()]
    if found.old is not None:
        lines += ["which replaces", dump_yaml(found.old).rstrip()]
    sender = _sender(found.case)
    if sender:
        lines += ["by a request with", dump_yaml(sender).rstrip()]
    for name, side, outcome in (("old", first, found.first), ("new", second, found.second)):
        lines.append(f"{name} ({side.source}): {outcome.word}")
        lines += [*_explain(side, found.case)] or [f"  {text}" for text in outcome.messages]
        if found.difference == "mutation" and not equal(outcome.exact, found.resource):
            lines.append("  leaves " + encode(outcome.exact))
        if found.difference == "effects":
            lines += [f"  {text}" for text in outcome.effects] or ["  nothing"]
    return "\n".join(lines) + "\n"


def _explain(side: _Side, case: Case) -> Iterator[str]:
    """Explain the decision of one side: the traces of its rules, or the reason why no rule matches the request."""
    traces = side.engine.explain(case.request()).rules
    chosen = [trace for trace in traces if trace.results] or list(traces[:_MOST_RULES])
    for trace in chosen:
        yield from (f"  {'  ' * line.depth}{line.text}" for line in rule_lines(trace, NO_PLACES))


def _check(options: EquivalentOptions, first: _Side, second: _Side) -> int:
    """Return whether a record of an earlier comparison is one of these policies, and found no difference."""
    try:
        record = orjson.loads(read_file(Path(options.check)))
        digests = record["old"]["sha256"], record["new"]["sha256"]
        result, blind = record["result"], record["saysNothingBecause"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise UsageError(f"`{options.check}` is no record of `pyverno equivalent`") from None
    if digests != (first.digest, second.digest):
        changed = options.old if digests[0] != first.digest else options.new
        STDOUT.write(f"{changed} has changed since the comparison: compare again\n")
        return _DIFFERENT
    if result != "no difference found":
        STDOUT.write("the comparison found a difference\n")
        return _DIFFERENT
    STDOUT.write("the certificate is one of these policies: no difference was found\n")
    return _BLIND if blind else _SAME


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
