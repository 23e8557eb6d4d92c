"""Policy arguments become documents."""

from __future__ import annotations

from pathlib import Path

from pyverno.compiler import compile_documents
from pyverno.offline.folderrules import FolderRules
from pyverno.offline.policies import load_policy_documents

POLICY = "apiVersion: kyverno.io/v1\nkind: {kind}\nmetadata: {{name: p}}\n"


def test_folders_keep_what_may_be_a_policy(tmp_path: Path) -> None:
    """A misspelt kind of a policy group stays, so that it becomes an error; other groups are left out."""
    (tmp_path / "a.yaml").write_text(POLICY.format(kind="ClusterPolicy"))
    (tmp_path / "b.yaml").write_text(POLICY.format(kind="ClusterPolcy"))
    (tmp_path / "c.yaml").write_text("apiVersion: v1\nkind: Pod\n---\njust: data\n---\n- list\n")
    (tmp_path / "d.yaml").write_text(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n"
    )
    kinds = [document.value["kind"] for document in load_policy_documents([str(tmp_path)]).documents]
    assert ["ClusterPolicy", "ClusterPolcy"] == kinds


def test_policies_of_other_tools_are_no_misspelt_policies(tmp_path: Path) -> None:
    """kyverno-json has a ValidatingPolicy of its own; a group that is nearly right stays an error."""
    text = "apiVersion: {group}/v1alpha1\nkind: ValidatingPolicy\nmetadata: {{name: p}}\n"
    (tmp_path / "a.yaml").write_text(text.format(group="json.kyverno.io"))
    (tmp_path / "b.yaml").write_text(text.format(group="policy.kyverno.io"))
    loaded = load_policy_documents([str(tmp_path)], folders=FolderRules())
    assert [] == loaded.documents
    assert ["b.yaml"] == [Path(error.location.file).name for error in loaded.errors]


def test_a_named_file_keeps_everything(tmp_path: Path) -> None:
    """A document that is not a policy stays and becomes an error when it is decoded."""
    (tmp_path / "c.yaml").write_text("apiVersion: v1\nkind: Pod\n")
    assert 1 == len(load_policy_documents([str(tmp_path / "c.yaml")]).documents)


def test_lists_are_expanded() -> None:
    """A v1 List of policies gives its items."""
    text = b"apiVersion: v1\nkind: List\nitems:\n- {kind: A}\n- {kind: B}\n"
    assert 2 == len(load_policy_documents(["-"], stdin=text).documents)


def test_one_bad_source_does_not_hide_the_others(tmp_path: Path) -> None:
    """Each gives one error."""
    (tmp_path / "bad.yaml").write_text("a: [")
    (tmp_path / "good.yaml").write_text(POLICY.format(kind="Policy"))
    loaded = load_policy_documents([str(tmp_path), str(tmp_path / "none.yaml"), "https://h/o"])
    assert (1, 3) == (len(loaded.documents), len(loaded.errors))


def test_a_kind_that_is_no_string_is_left_to_the_compiler(tmp_path: Path) -> None:
    """It has the error of any field of a wrong type, and its place."""
    path = tmp_path / "policy.yaml"
    path.write_text("apiVersion: kyverno.io/v1\nkind: [ClusterPolicy]\n")
    loaded = load_policy_documents([str(path)], folders=FolderRules())
    (error,) = compile_documents(loaded.documents).errors
    assert ([], f"{path}:2:7: kind: expected a string, found a list") == (loaded.errors, str(error))
