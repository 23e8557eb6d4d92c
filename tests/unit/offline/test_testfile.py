"""Test files of the command line: decoded strictly, with the place of every problem."""

from __future__ import annotations

import pickle

import pytest

from pyverno.errors import PyvernoError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.clifiles import is_deprecated
from pyverno.offline.testfile import TestFile, read_test_file

HEAD = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\n"


def read(text: str) -> TestFile:
    """Decode one test."""
    return read_test_file(load_documents(text, file="t.yaml")[0])


def test_fields_are_read_whatever_their_case_and_lists_lose_duplicates() -> None:
    """Kyverno's command line reads these files the same way."""
    test = read(HEAD + "Policies: [a, b, a]\nresources: [r]\njsonPayload: x\njsonPayloads: [z, x]\n")
    assert ("t", ("a", "b"), ("r",)) == (test.name, test.policies, test.resources)
    assert ("x", "z") == test.json_payloads


def test_a_row_is_read_with_all_that_it_expects() -> None:
    """The policy's namespace is not looked at."""
    row = "{policy: ns/p, rule: r, result: warn, resources: [a], operation: DELETE, isMUtatingPolicy: true}"
    (result,) = read(HEAD + f"results: [{row}]\n").results
    assert ("p", "r", "warn", ("a",), "DELETE") == (
        result.policy_name,
        result.rule,
        result.result.value,
        result.resources,
        result.operation,
    )


@pytest.mark.parametrize(
    ("row", "resources"),
    [
        ("{policy: p, resources: [a, two/b], namespace: one, result: pass}", ("one/a", "two/b")),
        ("{policy: p, resource: a, namespace: one, result: pass}", ("one/a",)),
        ("{policy: p, resources: [a], result: pass}", ("a",)),
    ],
)
def test_the_namespace_of_a_row_is_that_of_its_names(row: str, resources: tuple[str, ...]) -> None:
    """A field of the older schema: it was read and had no effect, so that objects of other namespaces were checked."""
    (result,) = read(HEAD + f"results: [{row}]\n").results
    assert resources == result.resources


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("colour: red", "t.yaml:4:1: colour: unknown field `colour`"),
        ("results: [{rule: r, result: pass}]", "required field `policy` is missing"),
        ("results: [{policy: p, result: maybe}]", "t.yaml:4:31: "),
        ("apiCallResponses: [{response: {body: {}}}]", "exactly one of `url` and `urlPath` must be set"),
        ("apiCallResponses: [{url: /a, response: {body: {}}}]", "`/a` must be an http or https address"),
        ("apiCallResponses: [{urlPath: a, response: {body: {}}}]", "`a` must start with /"),
        ("apiCallResponses: [{urlPath: /a, method: PUT, response: {body: {}}}]", "method `PUT` must be GET or POST"),
        ("apiCallResponses: [{urlPath: /a, response: {statusCode: 99, body: {}}}]", "must be between 100 and 599"),
        ("apiCallResponses: [{urlPath: /a, response: {}}]", "the response needs a body"),
        (
            "apiCallResponses: [{urlPath: /a, response: {body: {}}}, {urlPath: /a, response: {body: {}}}]",
            "`:/a` is answered twice",
        ),
        ("globalContextEntries: [{name: a}]", "exactly one of `data`, `resources` and `resourceFiles` must be set"),
        ("globalContextEntries: [{name: a, data: {}}, {name: a, data: {}}]", "entry `a` is given twice"),
    ],
)
def test_what_is_wrong_is_an_error_with_its_place(text: str, error: str) -> None:
    """No mistake is ignored."""
    with pytest.raises(PyvernoError) as caught:
        read(HEAD + text + "\n")
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("text", "deprecated"),
    [
        (HEAD, False),
        (HEAD + "name: t\n", True),
        ("kind: Test\n", True),
        ("apiVersion: cli.kyverno.io/v1alpha1\n", True),
    ],
)
def test_the_deprecated_schema_is_distinguished(text: str, deprecated: bool) -> None:
    """A file without apiVersion or kind, or with a name at the top level, has the deprecated schema."""
    assert deprecated == is_deprecated(load_documents(text)[0])


def test_a_test_can_be_handed_to_another_process() -> None:
    """Workers get it by pickling."""
    test = read(HEAD + "results: [{policy: p, result: pass}]\n")
    assert test == pickle.loads(pickle.dumps(test))  # noqa: S301 - our own bytes


def test_a_file_of_another_kind_is_told_so() -> None:
    """A policy given to `pyverno test` was an unknown field `spec`; only a file that cannot be decoded is refused."""
    text = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec: {}\n"
    with pytest.raises(PyvernoError) as raised:
        read(text)
    assert "t.yaml:2:7: a file of the kind `Test` is expected, not `ClusterPolicy`" == str(raised.value)
