"""Addresses of webhooks."""

from __future__ import annotations

import pytest

from kubesandbox.validation.webhookclient import client_config, review_versions
from pyverno.kube.status import FieldError


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"url": "https://h/x"}, []),
        ({"service": {"name": "a", "namespace": "b"}}, []),
        ({}, ["c: Required value: exactly one of url or service is required"]),
        (
            {"url": "https://h", "service": {"name": "a", "namespace": "b"}},
            ["c: Required value: exactly one of url or service is required"],
        ),
        (
            {"url": "http://h/"},
            [
                "c.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; "
                "desired format: https://host[/path]"
            ],
        ),
        (
            {"url": "https://u:p@h/?a=b#c"},
            [
                'c.url: Invalid value: "u:p": user information is not permitted in the URL',
                'c.url: Invalid value: "c": fragments are not permitted in the URL',
                'c.url: Invalid value: "a=b": query parameters are not permitted in the URL',
            ],
        ),
        (
            {"service": {"port": 0}},
            [
                "c.service.name: Required value",
                "c.service.namespace: Required value",
                "c.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
            ],
        ),
    ],
)
def test_a_client_is_a_url_or_a_service(config, expected):
    """A URL or service that cannot be called is refused."""
    errors: list[FieldError] = []
    client_config(config, "c", errors)
    assert expected == list(map(str, errors))


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (["v1"], []),
        (["v2", "v1beta1"], []),
        ([], ["v: Required value: some"]),
        (["v9"], ['v: Invalid value: ["v9"]: must include at least one of v1, v1beta1']),
        (["v1", "v1"], ['v[1]: Invalid value: "v1": duplicate version']),
    ],
)
def test_a_known_version_is_among_those_that_are_taken(versions, expected):
    """Unknown review versions may be listed beside a known one."""
    errors: list[FieldError] = []
    review_versions(versions, "v", errors, missing="some")
    assert expected == list(map(str, errors))
