"""One run of `pyverno impact`: read both sets of policies and the requests, judge each twice, print the changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.cli.apply.load import Inputs, load_inputs, open_session
from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.errors import report_error
from pyverno.cli.impact.changes import Category, Change, differences
from pyverno.cli.impact.output import Counts, render
from pyverno.cli.impact.recorded import Recording, read_recordings
from pyverno.cli.progress import tracked
from pyverno.cli.skipped import report_links
from pyverno.cli.terminal import STDOUT
from pyverno.compiler import Compilation, compile_documents
from pyverno.engine.engine import Review
from pyverno.engine.phases import ADMISSION, DELETING
from pyverno.engine.request import Operation, Request
from pyverno.errors import PyvernoError, UsageError, raise_all
from pyverno.offline.policies import load_policy_documents
from pyverno.offline.session import Session
from pyverno.value import dataclass, replace

__all__ = ["ImpactOptions", "run_impact"]

_FINE, _TOO_MUCH, _UNUSABLE = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactOptions:
    """All flags of the command."""

    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    cluster: bool = False
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    recorded: tuple[str, ...] = ()
    owner_label: str = "team"
    form: str = "table"
    examples: int = 3
    fail_on: int = 0


def run_impact(options: ImpactOptions) -> int:
    """Run the command; returns 1 when `fail_on` is reached, 2 where an input cannot be used."""
    try:
        if not (options.resources or options.cluster or options.recorded):
            raise UsageError("name objects with -r, --cluster or --recorded")
        sides = _policies(options.old), _policies(options.new)
        if not any(side.policies for side in sides):
            raise UsageError("there is no policy in " + _quote((*options.old, *options.new)))
        recording = read_recordings(options.recorded)
        given = ApplyOptions(
            policies=(*options.old, *options.new),
            resources=options.resources,
            cluster=options.cluster,
            kubeconfig=options.kubeconfig,
            context=options.context,
            namespace=options.namespace,
        )
        inputs = load_inputs(given)
        report_links(inputs.skipped)
        raise_all(inputs.errors)
        if options.cluster:
            from pyverno.cli.apply.cluster import cluster_session

            with cluster_session(given, inputs) as (live, session):
                raise_all(live.errors)
                counts, changes = _judge(options, session, sides, live, recording)
        else:
            counts, changes = _judge(options, open_session(inputs), sides, inputs, recording)
        if not counts.judged:
            raise UsageError(f"there is no object and no request to judge in {_sources(options)}")
    except PyvernoError as error:
        report_error(error)
        return _UNUSABLE
    STDOUT.write(render(changes, counts, form=options.form, examples=options.examples))
    hard = {(each.category, each.resource) for each in changes if each.category in (Category.REFUSED, Category.DELETED)}
    return _TOO_MUCH if options.fail_on and len(hard) >= options.fail_on else _FINE


def _sources(options: ImpactOptions) -> str:
    cluster = ("the cluster",) if options.cluster else ()
    return ", ".join((*filter(None, (_quote((*options.resources, *options.recorded)),)), *cluster))


def _quote(sources: Sequence[str]) -> str:
    return ", ".join(f"`{each}`" for each in sources)


def _policies(sources: Sequence[str]) -> Compilation:
    loaded = load_policy_documents(sources)
    compilation = compile_documents(loaded.documents)
    raise_all((*loaded.errors, *compilation.errors))
    return compilation


def _judge(
    options: ImpactOptions,
    session: Session,
    sides: tuple[Compilation, Compilation],
    inputs: Inputs,
    recording: Recording,
) -> tuple[Counts, list[Change]]:
    """Judge every request by both sides; returns the number of requests, and the differences."""
    old, new = (
        replace(session.with_policies(side), exceptions=(*session.exceptions, *side.exceptions)) for side in sides
    )
    judged = matched = 0
    changes: list[Change] = []
    requests = (*(old.request(body, Operation.CREATE) for body in inputs.manifests), *recording.requests)
    for request in tracked(requests, len(requests), "requests"):
        judged += 1
        reviews = list(_reviews(old, new, request))
        matched += any(review.results or review.effects for pair in reviews for review in pair)
        for before, after in reviews:
            changes += differences(before, after, owner_label=options.owner_label)
    return Counts(judged, recording.skipped, recording.redacted, matched), changes


def _reviews(old: Session, new: Session, request: Request) -> Iterator[tuple[Review, Review]]:
    """Yield the reviews of both sides in each phase."""
    for phases in (ADMISSION, DELETING) if request.operation is not Operation.DELETE else (ADMISSION,):
        yield old.answer(request, phases), new.answer(request, phases)
