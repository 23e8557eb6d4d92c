"""Files of authorization requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyverno import UsageError
from pyverno.offline.authorizationrequests import load_authorization_requests

if TYPE_CHECKING:
    from pathlib import Path


def test_every_document_is_a_request(tmp_path: Path) -> None:
    """JSON and YAML, in the order of files."""
    (tmp_path / "a.json").write_text('{"attributes": {"method": "GET"}}')
    (tmp_path / "b.yaml").write_text("attributes: {method: PUT}\n---\nattributes: {}\n")
    found = load_authorization_requests([str(tmp_path / "a.json"), str(tmp_path / "b.yaml")], "HTTP")
    assert [{"method": "GET"}, {"method": "PUT"}, {}] == [each.value["attributes"] for each in found]


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("{", "HTTP", "failed to parse HTTP payload from "),
        ("[]", "HTTP", "the document must be an object"),
        ("{attributes: {body: 1}}", "HTTP", "`attributes.body` must be a text in base64"),
        (
            "{attributes: {verb: GET}}",
            "Envoy",
            "failed to parse envoy payload from .*: unknown field `attributes.verb`",
        ),
    ],
)
def test_what_is_no_request_ends_the_run(tmp_path: Path, text: str, mode: str, message: str) -> None:
    """The error names the file and the mistake."""
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UsageError, match=message):
        load_authorization_requests([str(tmp_path / "a.yaml")], mode)
