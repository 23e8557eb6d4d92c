"""Failures in the words of Go's client."""

from __future__ import annotations

import pytest

from kubesandbox.admission.webhooks.failures import refusal_text


@pytest.mark.parametrize(
    ("code", "kind", "data", "expected"),
    [
        (500, "text/plain", b"oops\n", 'an error on the server ("oops") has prevented the request from succeeding'),
        (
            500,
            "application/json",
            b"{}",
            'an error on the server ("unknown") has prevented the request from succeeding',
        ),
        (404, "text/plain", b"", "the server could not find the requested resource"),
        (403, "text/plain", b"go away", "go away"),
        (403, "application/json", b'{"a":1}', "unknown"),
        (403, "application/json", b'{"kind":"Status","message":"said"}', "said"),
        (302, "text/plain", b"x", "the server responded with the status code 302 but did not return more information"),
    ],
)
def test_answers_that_are_no_success_have_their_sentences(code, kind, data, expected):
    """A Status keeps its message, some codes have fixed texts, others quote the body."""
    assert expected == refusal_text(code, kind, data)
