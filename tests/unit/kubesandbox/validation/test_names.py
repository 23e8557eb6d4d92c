"""Tests of `validation.names`."""

from __future__ import annotations

import pytest

from kubesandbox.validation.names import (
    Form,
    address_problems,
    config_key_problems,
    dns_label_1035_problems,
    dns_label_problems,
    dns_subdomain_problems,
    env_name_problems,
    path_segment_problems,
    port_name_problems,
    wildcard_subdomain_problems,
)


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        (dns_label_problems, "a-1", "A"),
        (dns_label_1035_problems, "a1", "1a"),
        (dns_subdomain_problems, "a.b-1", "a..b"),
        (wildcard_subdomain_problems, "*.a.b", "a.*.b"),
        (path_segment_problems, "a:b", "a%b"),
        (config_key_problems, "a_B.1", ".."),
        (env_name_problems, "A b", "A=b"),
        (port_name_problems, "http-1", "http--1"),
        (address_problems, "::1", "1.2.3"),
    ],
)
def test_a_form_takes_what_it_should_and_nothing_else(form: Form, good: str, bad: str) -> None:
    """One good and one bad name for every form."""
    assert () == form(good)
    assert form(bad)


@pytest.mark.parametrize(("form", "limit"), [(dns_label_problems, 63), (dns_subdomain_problems, 253)])
def test_names_have_a_limit(form: Form, limit: int) -> None:
    """One character more is too many."""
    assert () == form("a" * limit)
    assert (f"must be no more than {limit} characters",) == form("a" * (limit + 1))
