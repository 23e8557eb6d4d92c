"""F4, I11 at the command line: a bug anywhere is one error without a value, and an exit code that is not 0.

Every function of the rooms that only the command line has is a site (`faultsites.py`); every command is run.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from pyverno.cli.apply.options import FORMATS
from pyverno.cli.args.fastargv import run_fast_path
from pyverno.cli.errors import guarded
from pyverno.cli.root import COMMANDS, run
from tests.security.faultsites import Sites, sampled

ROOMS = (
    *("pyverno.cli", "pyverno.offline", "pyverno.report", "pyverno.compiler.lints", "pyverno.compiler.equivalence"),
    *("pyverno.compiler.analysis", "pyverno.compiler.migration"),
)
# what turns a bug into its error
FRAME = (
    "pyverno.cli.errors.",
    "pyverno.engine.",
    "pyverno.value.",
    "pyverno.lazyregex.",
    "pyverno.cli.ui.",
    "pyverno.cli.sandbox.",
)

POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: guard}
spec:
  rules:
  - name: check
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {failureAction: Enforce, message: no bad data, pattern: {data: {a: '!bad'}}}
"""
CHANGING = """\
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: label}
spec:
  rules:
  - name: add
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}
"""
CEL = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: guard}
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "object.?data.a.orValue('') != 'bad'", message: no bad data}]
"""
RESOURCES = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: first, namespace: team}
data: {a: bad}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second, namespace: team}
data: {a: bad}
"""
SUITE = """\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: suite}
policies: [policy.yaml]
resources: [resources.yaml]
results:
- {policy: guard, rule: check, kind: ConfigMap, resources: [first, second], result: fail}
"""
FILES = {
    "policy.yaml": POLICY,
    "changing.yaml": POLICY + CHANGING,
    "other.yaml": POLICY.replace("!bad", "!worse"),
    "cel.yaml": CEL,
    "resources.yaml": RESOURCES,
    "none.yaml": "# nothing",
    "one.yaml": RESOURCES.partition("---")[0],
    "suite/kyverno-test.yaml": SUITE,
    "suite/policy.yaml": POLICY,
    "suite/resources.yaml": RESOURCES,
    "report.yaml": """\
apiVersion: wgpolicyk8s.io/v1alpha2
kind: PolicyReport
metadata: {name: a, namespace: team}
results: [{policy: guard, rule: check, result: fail, resources: [{kind: ConfigMap, name: first, namespace: team}]}]
""",
    "document.yaml": "a: {b: c}\n",
}

LINES = {
    "apply": "apply changing.yaml -r resources.yaml",
    "apply a report": "apply cel.yaml -r resources.yaml --policy-report",
    "apply findings": "apply policy.yaml -r resources.yaml --output-format sarif",
    "lint": "lint policy.yaml cel.yaml",
    "test": "test suite",
    "explain": "explain policy.yaml -r resources.yaml",
    "equivalent": "equivalent policy.yaml other.yaml --objects 30",
    "analyze": "analyze policy.yaml --objects 30",
    "impact": "impact --from other.yaml --to policy.yaml -r resources.yaml --fail-on denied",
    "report": "report report.yaml",
    "jp": "jp query a.b -i document.yaml",
    "cel": "cel eval object.a.b -i document.yaml",
    "policies": "policies list",
    "create": "create user-info",
    "install": "install",
    "version": "version",
    "completion": "completion bash",
    "fix": "fix policy policy.yaml",
    "migrate": "migrate policy.yaml --objects 30",
    "config": "config show",
}
ELSEWHERE = {
    "ui": "serves pages: `tests/unit/ui`, and its worker in `tests/unit/ui/playground`",
    "verify": "reads a registry: every check is an engine site",
    "trust": "reads a repository",
    "sandbox": "serves an API: see `test_sandbox_faults.py`",
    "controller": "a process: see `test_webhook_faults.py` and `test_controller_faults.py`",
    "docs": "writes the reference of the project",
    "oci": "reads and writes a registry",
}


class Done(NamedTuple):
    """What a run of the command line left."""

    code: object
    out: str
    err: str


class CanaryError(TypeError):
    """An exception whose text no one may see."""

    def __init__(self) -> None:
        super().__init__("canary-5c1e")


def ran(line: str) -> Done:
    """Run a command line in this process, as the `pyverno` script does."""
    out, err, words = io.StringIO(), io.StringIO(), line.split()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = run_fast_path(words)
            code = run(words) if code is None else code
        except BaseException as error:
            code = f"{error!r} escaped"
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Write the files, work beside them, and make every function a site."""
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    made = Sites(modules=_loaded, owners=(), accepts=lambda site: not site.startswith(FRAME))
    with contextlib.chdir(folder):
        for line in LINES.values():  # imports what it needs
            ran(line)
        with made.installed():
            yield made


def _loaded() -> list[ModuleType]:
    """Return the modules of the rooms that the command lines have imported."""
    return [module for name, module in sorted(sys.modules.items()) if name.startswith(ROOMS)]


def problem_of(usual: Done, done: Done) -> str:
    """Return how a bug misled the caller, "" when it did not."""
    if not isinstance(done.code, int):
        return str(done.code)
    if "Traceback" in done.err + done.out or "canary" in done.err + done.out:
        return "it shows a traceback or a value"
    if done == usual:
        return ""  # what only makes things faster
    if not done.code:
        return "the exit code is 0"
    words = ("internal error", "ended with a bug")
    return "" if any(word in done.out + done.err for word in words) else "nothing says that there was a bug"


@pytest.mark.parametrize("name", LINES)
def test_a_bug_is_one_error_and_never_success(name: str, sites: Sites) -> None:
    """Whatever a command was doing: the exit code is not 0, and no traceback and no value is shown."""
    line = LINES[name]
    ran(line)
    sites.calls, sites.is_counting = {}, True
    usual = ran(line)
    sites.is_counting = False
    assert usual == ran(line)
    assert len(sites.calls) >= 2
    problems: dict[str, str] = {}
    for site in sampled(sites.calls, 12):
        sites.arm(site, CanaryError)
        done = ran(line)
        sites.disarm()
        if sites.thrown and (problem := problem_of(usual, done)):
            problems[site] = problem
    assert {} == problems


def test_every_command_is_run_or_has_a_reason() -> None:
    """A new command belongs to `LINES`."""
    assert set(COMMANDS) == {name.partition(" ")[0] for name in LINES} | ELSEWHERE.keys()


@pytest.mark.parametrize("line", ["apply policy.yaml -r resources.yaml", "apply policy.yaml -r resources.yaml --table"])
def test_a_bug_in_one_resource_leaves_the_others(line: str, sites: Sites) -> None:
    """The resource that could not be reviewed is an error by name, and the next one is judged."""
    sites.calls, sites.is_counting = {}, True
    ran(line)
    sites.is_counting = False
    found = [site for site in sites.calls if site.startswith("pyverno.offline.session.Session.")]
    lost = {}
    for site in set(found) - {"pyverno.offline.session.Session.open"}:
        sites.arm(site, CanaryError)
        done = ran(line)
        sites.disarm()
        if not all(word in done.err for word in ("first", "internal error (fault-type)")) or "second" not in done.out:
            lost[site] = done
    assert {} == lost
    assert len(found) >= 7


FORMS = (
    *("", "--policy-report", "--policy-report --output-format json", "--generate-exceptions", "--table"),
    *("--table --detailed-results", "--compat kyverno", "-v 1"),
    *(f"--format {name}" for name in FORMATS if name != "text"),
)
# what contains the bugs of each result, or keeps what it has made
KEEPING = {
    "pyverno.report.rendered.rendered",
    "pyverno.report.packed.Packed.add",
    "pyverno.cli.apply.outcome.Outcome.step",
}


def called(line: str, sites: Sites) -> dict[str, int]:
    """Return how often a command line calls each site."""
    sites.calls, sites.is_counting = {}, True
    ran(line)
    sites.is_counting = False
    return sites.calls


@pytest.mark.parametrize("form", FORMS)
def test_a_bug_in_one_result_leaves_the_other_results(form: str, sites: Sites) -> None:
    """In every output: what is called for each resource costs one of them, and the error names rule or resource."""
    names = ("none.yaml", "one.yaml", "resources.yaml")
    none, one, two = (f"apply changing.yaml -r {name} {form} --allow-empty" for name in names)
    before, usual = called(none, sites), called(one, sites)
    each = [site for site, times in called(two, sites).items() if times > usual.get(site, 0) and site not in before]
    rooms = ("pyverno.report.", "pyverno.cli.apply.judge.", "pyverno.cli.apply.o", "pyverno.cli.apply.r")
    found = sampled((site for site in {*each} - KEEPING if site.startswith(rooms)), 25)
    lost = {}
    for site in found:
        sites.arm(site, CanaryError)
        done = ran(two)
        sites.disarm()
        problem = problem_of(Done(0, "", ""), done)
        if not problem and "second" not in done.out + done.err.replace("Error", ""):
            problem = "the other resource is missing"
        if not problem and not any(word in done.err for word in ("first", "guard", "label")):
            problem = "nothing says what is missing"
        if problem:
            lost[site] = problem
    assert {} == lost
    assert found


MIGRATIONS = ("", "--plan", "--diff", "--write new", "--write new --check", "--in-place")
# what contains the bugs of each conversion, and what writes the report of all
AROUND = ("pyverno.cli.migrate.run._converted", "pyverno.cli.migrate.output.Bugs.", "pyverno.cli.migrate.report.")


@pytest.mark.parametrize("form", MIGRATIONS)
def test_a_bug_in_one_conversion_leaves_the_other_conversions(form: str, sites: Sites, tmp_path: Path) -> None:
    """The error names the file, the exit code is that of an error, and the other policy is converted."""
    text = POLICY.replace("guard", "late")

    def fresh() -> None:
        Path("two.yaml").write_text(f"{POLICY}---\n{text}")
        Path("first.yaml").write_text(POLICY)

    fresh()
    ran("migrate two.yaml --write new --objects 5")
    counts = []
    for name in ("first.yaml", "two.yaml"):
        fresh()
        counts.append(called(f"migrate {name} {form} --objects 5", sites))
    usual, both = counts
    rooms = ("pyverno.cli.migrate.", "pyverno.compiler.migration.", "pyverno.compiler.equivalence.")
    each = [site for site, times in both.items() if times > usual.get(site, 0) and site.startswith(rooms)]
    lost = {}
    for site in sampled((site for site in each if not site.startswith(AROUND)), 12):
        fresh()
        sites.arm(site, CanaryError)
        done = ran(f"migrate two.yaml {form} --objects 5")
        sites.disarm()
        problem = problem_of(Done(0, "", ""), done)
        if not problem and (done.code != 2 or "two.yaml" not in done.err):
            problem = "the exit code or the error does not say so"
        if not problem and "1 of 2" not in done.err and "late" not in done.out + Path("two.yaml").read_text():
            problem = "the other policy is missing"
        if problem:
            lost[site] = f"{problem}: {done.err}"
    assert {} == lost
    assert each


def test_a_bug_in_one_check_leaves_the_other_checks(sites: Sites) -> None:
    """A lint that breaks is a finding; those after it are made all the same."""
    site = "pyverno.compiler.lints.run._checked"
    sites.arm(site, CanaryError)
    done = ran("lint policy.yaml")
    sites.disarm()
    assert (1, 1) == (done.code, done.out.count("internal error (fault-type)"))


def test_a_bug_in_one_suite_leaves_the_other_suites(sites: Sites) -> None:
    """`pyverno test` runs the rest, and fails."""
    sites.arm("pyverno.cli.test.suite.load_suite", CanaryError)
    done = ran("test suite suite/kyverno-test.yaml")
    sites.disarm()
    assert 1 == done.code
    assert "internal error (fault-type)" in done.out + done.err
    assert "Pass" in done.out


def test_an_error_of_the_operating_system_names_no_file() -> None:
    """An OSError that no command expects is a bug like others."""

    def broken() -> None:
        raise PermissionError(13, "canary-5c1e", "/canary-5c1e")

    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        code = guarded(broken)
    assert (1, False) == (code, "canary" in err.getvalue())
    assert "internal error (fault-system): PermissionError" in err.getvalue()
