"""One run of `pyverno analyze`: read, generate objects, run the checks, print, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.cli.analyze.options import AnalyzeOptions
from pyverno.cli.analyze.output import describe_check, list_checks, render
from pyverno.cli.equivalent.admission import admission_of
from pyverno.cli.errors import report_error
from pyverno.cli.impact.recorded import read_recordings
from pyverno.cli.progress import tracked
from pyverno.cli.skipped import report_links
from pyverno.cli.terminal import STDOUT
from pyverno.compiler.analysis.cost import rule_costs
from pyverno.compiler.analysis.population import make_population
from pyverno.compiler.analysis.registry import CHECKS
from pyverno.compiler.analysis.run import analyze
from pyverno.compiler.analysis.sampling import MOST_POLICIES
from pyverno.compiler.analysis.workspace import Workspace
from pyverno.compiler.compile import compile_documents
from pyverno.compiler.migration.inference import known_definitions
from pyverno.engine.host import Host
from pyverno.errors import PyvernoError, UsageError, raise_all
from pyverno.kube.json import JSONObject
from pyverno.offline.host import OfflineHost
from pyverno.offline.manifests import load_manifests
from pyverno.offline.objects import ObjectStore
from pyverno.offline.policies import load_policy_documents
from pyverno.offline.resources import read_objects
from pyverno.spelling import did_you_mean

__all__ = ["run_analyze"]

_CLEAN, _FOUND, _UNUSABLE = 0, 1, 2
_NOTHING = "no object was tried: none was given with --resource, and none could be generated"


def run_analyze(options: AnalyzeOptions) -> int:
    """Run the command; returns 0 without findings, 1 with findings, 2 where an input cannot be used."""
    try:
        if options.lists:
            STDOUT.write("".join(list_checks()))
            return _CLEAN
        if options.explain:
            STDOUT.write(describe_check(options.explain))
            return _CLEAN
        _check_options(options)
        workspace, errors = _workspace(options)
        found = [*analyze(workspace, select=options.select, ignore=options.ignore)]
        costs = rule_costs(workspace) if options.costs else []
    except PyvernoError as error:
        report_error(error)
        return _UNUSABLE
    if workspace.policies and not workspace.objects and not found:
        errors = (*errors, UsageError(_NOTHING))
    for each in errors:
        report_error(each)
    if workspace.policies or options.form != "text":
        STDOUT.write(render(options, workspace, found, costs))
    if errors:
        return _UNUSABLE
    return _FOUND if found else _CLEAN


def _check_options(options: AnalyzeOptions) -> None:
    if not options.policies:
        raise UsageError("name the files or folders of the policies to analyze, or `-` for stdin")
    known = tuple(check.code for check in CHECKS)
    for word in (*options.select, *options.ignore):
        if not any(code.startswith(word.upper()) for code in known):
            raise UsageError(f"no check has a code that begins with `{word}`{did_you_mean(word, known)}")


def _workspace(options: AnalyzeOptions) -> tuple[Workspace, Sequence[PyvernoError]]:
    """Return the policies with the objects to judge, and the errors of documents that are left out."""
    loaded = load_policy_documents(options.policies)
    compilation = compile_documents(loaded.documents)
    if not compilation.policies and not loaded.errors and not compilation.errors:
        raise UsageError("there is no policy to analyze in " + ", ".join(f"`{each}`" for each in options.policies))
    if len(compilation.items) > MOST_POLICIES:
        raise UsageError(
            f"{len(compilation.items)} policies and exceptions are too many for one analysis, which compares them in "
            f"pairs: at most {MOST_POLICIES}"
        )
    given = _load_objects(options)
    valid = [item.document.value for item in compilation.items if item.written is not None and not item.errors]
    definitions = known_definitions(valid, examples=given)
    admit = admission_of(options.kube_version, definitions)
    population = make_population(
        valid,
        given,
        admit,
        count=options.objects,
        seed=options.seed,
        definitions=definitions,
        watched=lambda documents: tracked(documents, len(valid), "policies"),
    )
    return Workspace(compilation, population, _host), (*loaded.errors, *compilation.errors)


def _load_objects(options: AnalyzeOptions) -> list[JSONObject]:
    """Return the objects of files, of a cluster and of recorded requests."""
    given: list[JSONObject] = []
    if options.resources:
        manifests = load_manifests(options.resources)
        objects, errors = read_objects(manifests.documents)
        raise_all((*manifests.errors, *errors))
        given += [each.value for each in objects]
    if options.recorded:
        given += read_recordings(options.recorded).objects
    if options.cluster:
        from pyverno.cli.apply.cluster import cluster_session  # a client is imported for clusters only
        from pyverno.cli.apply.load import load_inputs
        from pyverno.cli.apply.options import ApplyOptions

        flags = ApplyOptions(
            policies=options.policies, cluster=True, kubeconfig=options.kubeconfig, context=options.context
        )
        inputs = load_inputs(flags)
        report_links(inputs.skipped)
        with cluster_session(flags, inputs) as (live, _):
            raise_all(live.errors)
            given += live.manifests
    return given


def _host(objects: Sequence[JSONObject]) -> Host:
    return OfflineHost(objects=ObjectStore(objects))
