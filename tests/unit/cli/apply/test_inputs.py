"""Nothing unchecked is green: what folders give, and runs that judged nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.documents import BAD, GOOD, LATEST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commandline import Ran, Run

CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
TEMPLATE = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n"
KUSTOMIZATION = "resources: [pod.yaml]\n"
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [pod.yaml]\n"


def write(folder: Path, **files: str) -> None:
    """Write files by path; `__` stands for a slash, `_dot_` for a dot."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def summary(ran: Ran) -> str:
    """The line with the counts."""
    return next(line for line in ran.out.splitlines() if line.startswith("pass: "))


def test_a_folder_gives_every_manifest_below_it(cli: Run, folder: Path) -> None:
    """At any depth, with any suffix that manifests have, in any case."""
    write(folder, m__a_dot_yaml=GOOD, m__x__b_dot_YML=BAD, m__x__y__c_dot_Json='{"apiVersion": "v1", "kind": "Pod"}')
    ran = cli("apply", "latest.yaml", "-r", "m")
    assert (1, True) == (ran.code, "to 3 resource(s)" in ran.out)


def test_what_is_no_manifest_is_skipped_with_a_count(cli: Run, folder: Path) -> None:
    """Charts, kustomizations, values and other files are named on stderr, and change nothing else."""
    write(
        folder,
        m__pod_dot_yaml=GOOD,
        m__web__Chart_dot_yaml=CHART,
        m__web__values_dot_yaml="name: a\n",
        m__web__templates__pod_dot_yaml=TEMPLATE,
        m__overlay__kustomization_dot_yaml=KUSTOMIZATION,
        m__part__component_dot_yaml=COMPONENT,
        m__package_dot_json='{"name": "site"}',
        m__site_dot_yml="a: !python/name:x\nb: [1\n",
        m__empty_dot_yaml="# nothing\n",
    )
    ran = cli("apply", "latest.yaml", "-r", "m")
    assert (0, "pass: 1, fail: 0, warn: 0, error: 0, skip: 0") == (ran.code, summary(ran))
    assert ran.err.startswith("note: skipped 8 files: ")
    assert 2 == ran.err.count("\n")
    assert ran.err.endswith("note: templates of charts are judged when they are rendered: --helm m/web\n")
    assert "m/web/templates" not in cli("apply", "latest.yaml", "-r", "m/pod.yaml").err


def test_a_file_that_is_named_itself_is_never_skipped(cli: Run, folder: Path) -> None:
    """A file named explicitly must hold a resource, or the run reports an error."""
    write(folder, values_dot_yaml="name: a\n")
    ran = cli("apply", "latest.yaml", "-r", "values.yaml,good.yaml")
    assert (1, True) == (ran.code, "values.yaml:1:1: the document is not a resource" in ran.err)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("kind: Pod\n", "m/odd.yaml:1:1: the document is not a resource"),
        ("apiVersion: v1\nkind: Pod\nspec: [1\n", "m/odd.yaml:"),
        (f"{GOOD}---\na: 1\n", "m/odd.yaml:"),
    ],
    ids=["half a manifest", "broken manifest", "one of several documents"],
)
def test_what_may_be_a_manifest_is_an_error(cli: Run, folder: Path, text: str, error: str) -> None:
    """A broken file of a folder that mentions apiVersion and kind is not left out."""
    write(folder, m__pod_dot_yaml=GOOD, m__odd_dot_yaml=text)
    ran = cli("apply", "latest.yaml", "-r", "m")
    assert (1, True, "") == (ran.code, f"Error: {error}" in ran.err, "skipped" * ran.err.count("skipped"))


@pytest.mark.parametrize(
    ("flags", "resources"),
    [
        (["--include", "a.yaml"], 1),
        (["--include", "x/**"], 2),
        (["--include", "*.yaml", "--exclude", "x"], 1),
        (["--exclude", "x/y"], 2),
        (["--exclude", "**/c.yaml,a.yaml"], 1),
    ],
)
def test_globs_choose_files_of_folders(cli: Run, folder: Path, flags: list[str], resources: int) -> None:
    """Names at any depth, paths below the folder, whole folders."""
    write(folder, m__a_dot_yaml=GOOD, m__x__b_dot_yaml=GOOD, m__x__y__c_dot_yaml=GOOD)
    assert f"to {resources} resource(s)" in cli("apply", "latest.yaml", "-r", "m", *flags).out


def test_an_ignore_file_leaves_files_out(cli: Run, folder: Path) -> None:
    """With the syntax of .gitignore: comments, folders, anchored paths, exceptions; also in folders inside."""
    write(
        folder,
        m__a_dot_yaml=GOOD,
        m__gen__b_dot_yaml=BAD,
        m__x__gen__keep_dot_yaml=GOOD,
        m__x__old_dot_yaml=BAD,
        m__x__fine_dot_yaml=GOOD,
    )
    (folder / "m" / ".pyvernoignore").write_text("# generated\n/gen/\n")
    (folder / "m" / "x" / ".pyvernoignore").write_text("*.yaml\n!fine.yaml\n!gen/*\n")
    ran = cli("apply", "latest.yaml", "-r", "m")
    assert (0, "pass: 3, fail: 0, warn: 0, error: 0, skip: 0") == (ran.code, summary(ran))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["latest.yaml", "-r", "nothing"], "there is no resource, so that nothing is checked"),
        (["nothing", "-r", "good.yaml"], "the policies hold no rule, so that nothing is checked"),
        (["exception.yaml", "-r", "good.yaml"], "the policies hold no rule, so that nothing is checked"),
        (["latest.yaml", "-r", "-"], "standard input holds no resource"),
        (["latest.yaml", "-r", "good.yaml", "-r", "-"], "standard input holds no resource"),
    ],
)
def test_a_run_that_judges_nothing_is_an_error(cli: Run, folder: Path, arguments: list[str], error: str) -> None:
    """Unless `--allow-empty` accepts it, or Kyverno's behaviour is wanted."""
    (folder / "nothing").mkdir()
    ran = cli("apply", *arguments)
    assert (1, 1, True) == (ran.code, ran.err.count("Error: "), error in ran.err)
    assert "error: 1" in summary(ran)
    assert 0 == cli("apply", *arguments, "--allow-empty").code
    assert 0 == cli("apply", *arguments, "--compat", "kyverno").code


def test_resources_that_no_rule_applies_to_are_noted(cli: Run, folder: Path) -> None:
    """A misspelt kind looks like resources without failures; policies for other kinds are no mistake."""
    write(folder, pods_dot_yaml=BAD.replace("kind: Pod", "kind: Pods"))
    ran = cli("apply", "latest.yaml", "-r", "pods.yaml")
    assert (0, "note: no rule applies to the resource, so that nothing was checked\n") == (ran.code, ran.err)
    assert "" == cli("apply", "latest.yaml", "-r", "pods.yaml", "--compat", "kyverno").err
    assert "" == cli("apply", "latest.yaml", "-r", "pods.yaml", "-r", "good.yaml").err


@pytest.mark.parametrize("place", ["policy.yaml", "p"])
@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("kyvrno.io/v1", "kyverno.io/v1"), ("kyverno/v1", "kyverno.io/v1"), ("v1", "kyverno.io/v1")],
)
def test_an_api_group_that_is_nearly_one_of_policies_is_an_error(
    cli: Run, folder: Path, place: str, wrong: str, meant: str
) -> None:
    """Also in a folder, where documents of other groups are left out."""
    text = LATEST.replace("kyverno.io/v1", wrong)
    write(folder, policy_dot_yaml=text, p__policy_dot_yaml=text)
    ran = cli("apply", "audited.yaml", place, "-r", "good.yaml")
    error = f"policy.yaml:1:13: `{wrong}` is no API of policies: did you mean `{meant}`?\n"
    assert (1, True, 1) == (ran.code, error in ran.err, ran.err.count("Error: "))


def test_policies_of_other_projects_are_left_out(cli: Run, folder: Path) -> None:
    """Kinds of the same name exist elsewhere."""
    write(folder, p__gpu_dot_yaml=LATEST.replace("kyverno.io/v1", "nvidia.com/v1"), p__own_dot_yaml=LATEST)
    ran = cli("apply", "p", "-r", "good.yaml")
    assert (0, "") == (ran.code, ran.err)


def test_the_name_kyverno_means_its_behaviour(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link of that name replaces Kyverno's command in a pipeline."""
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/kyverno"])
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml")
    assert "policy no-latest -> resource shop/Pod/bad failed:" in ran.out


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--format", "sarif", "-p"], "--format sarif and --policy-report"),
        (["--table", "--format", "json"], "--format json and --table"),
        (["-p", "--generate-exceptions"], "--policy-report and --generate-exceptions"),
        (["-t", "--stdin"], "--table and --stdin"),
        (["-q", "-v"], "--quiet and -v"),
    ],
)
def test_flags_that_contradict_each_other_are_errors(cli: Run, flags: list[str], error: str) -> None:
    """Each would decide what stdout holds."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml", *flags)
    assert (1, f"Error: {error} cannot be used together, use one or the other\n", "") == (ran.code, ran.err, ran.out)


@pytest.mark.parametrize(
    ("flags", "flag"),
    [(["-o", "json"], "--format json"), (["-o", "yaml", "-p"], "--output-format yaml")],
    ids=["results", "reports"],
)
def test_a_format_given_as_the_output_folder_is_an_error(cli: Run, folder: Path, flags: list[str], flag: str) -> None:
    """Readers of kubectl write `-o json`; a folder of that name that exists, or `./json`, is meant as a folder."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml", *flags)
    assert (1, "") == (ran.code, ran.out)
    assert f"for results in this format use {flag}, and for the folder -o ./{flags[1]}" in ran.err
    assert not (folder / flags[1]).exists()
    assert 0 == cli("apply", "latest.yaml", "-r", "good.yaml", "-o", f"./{flags[1]}").code
    assert 0 == cli("apply", "latest.yaml", "-r", "good.yaml", "-o", flags[1]).code


def test_a_pattern_that_the_shell_replaced_is_explained(cli: Run, folder: Path) -> None:
    """`-r *.yaml` becomes `-r a.yaml b.yaml`: the second file is read as a policy."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml", "bad.yaml")
    assert 1 == ran.code
    assert "is not a policy kind" in ran.err
    assert "A pattern needs quotes (-r '*.yaml')" in ran.err
    assert "needs quotes" not in cli("apply", "latest.yaml", "bad.yaml").err


def test_a_misspelt_policy_is_no_sign_of_a_replaced_pattern(cli: Run, folder: Path) -> None:
    """The hint is for objects among the policies."""
    write(folder, typo_dot_yaml=LATEST.replace("ClusterPolicy", "ClusterPolcy"))
    ran = cli("apply", "latest.yaml", "typo.yaml", "-r", "good.yaml")
    assert (1, True, False) == (ran.code, "did you mean `ClusterPolicy`?" in ran.err, "needs quotes" in ran.err)


def test_a_chart_among_manifests_is_named_with_the_flag_that_renders_it(cli: Run, folder: Path) -> None:
    """Its templates are no YAML before."""
    chart = folder / "tree" / "web"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 0.1.0\n")
    (chart / "templates" / "pod.yaml").write_text("kind: {{ .Values.kind }}\n")
    note = "note: templates of charts are judged when they are rendered: --helm tree/web\n"
    assert note in cli("apply", "latest.yaml", "-r", "tree").err


def test_a_file_that_cannot_be_read_is_the_place_of_its_error(cli: Run, folder: Path) -> None:
    """A broken link in a folder, and a path that does not exist."""
    (folder / "tree").mkdir()
    (folder / "tree" / "link.yaml").symlink_to("gone.yaml")
    out = cli("apply", "latest.yaml", "-r", "tree,none.yaml", "--format", "github").out
    assert "::error file=tree/link.yaml," in out
    assert "::error file=none.yaml," in out


def test_definitions_must_be_definitions(cli: Run, folder: Path) -> None:
    """Another file is probably not the one that was meant; a document that is no object is an error in any role."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml", "--crd-paths", "bad.yaml")
    assert (1, "Error: the files of --crd-paths hold no CustomResourceDefinition\n") == (ran.code, ran.err)
    write(folder, odd_dot_yaml="apiVersion: v1\nkind: [Pod]\n")
    ran = cli("apply", "latest.yaml", "-r", "good.yaml", "--target-resource", "odd.yaml")
    assert (1, "Error: odd.yaml:2:7: `kind` must be a string, found a list\n") == (ran.code, ran.err)


@pytest.mark.parametrize("flags", [["--format", "json", "-o", "out.json"], ["-p", "-o", "report.yaml"], ["-o", "out"]])
def test_an_output_for_objects_that_no_policy_makes_is_a_warning(cli: Run, flags: list[str]) -> None:
    """It takes changed and generated objects; readers expect the results there."""
    expected = (
        f"warning: no policy changes or creates objects, so that `{flags[-1]}` stays empty: results are on stdout"
    )
    assert expected in cli("apply", "latest.yaml", "-r", "good.yaml", *flags).err
    assert "warning" not in cli("apply", "latest.yaml", "-r", "good.yaml", *flags, "--compat", "kyverno").err
