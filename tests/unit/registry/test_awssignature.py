"""Signatures equal those in Amazon's documentation."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from pyverno.registry.awssignature import AwsKeys, Signing, sign

BODY = b"Welcome to Amazon S3."
STORED = {
    "Date": "Fri, 24 May 2013 00:00:00 GMT",
    "x-amz-storage-class": "REDUCED_REDUNDANCY",
    "x-amz-content-sha256": hashlib.sha256(BODY).hexdigest(),
}


@pytest.mark.parametrize(
    ("method", "url", "headers", "body", "keys", "signing", "expected"),
    [
        (
            "GET",
            "https://example.amazonaws.com/",
            {},
            b"",
            AwsKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            Signing("service", "us-east-1", 1_440_938_160),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "PUT",
            "https://examplebucket.s3.amazonaws.com/test%24file.text",
            STORED,
            BODY,
            AwsKeys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            Signing("s3", "us-east-1", int(datetime(2013, 5, 24, tzinfo=UTC).timestamp())),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class, "
            "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
    ],
    ids=["get", "put"],
)
def test_a_request_is_signed_as_the_documentation_shows(
    method: str, url: str, headers: dict[str, str], body: bytes, keys: AwsKeys, signing: Signing, expected: str
) -> None:
    """Examples are that of the signing process without its query, and `PUT Object` of S3."""
    assert expected == sign(method, url, headers, body, keys=keys, signing=signing)["Authorization"]


def test_keys_are_never_shown() -> None:
    """Access key, secret and session token stay out of `repr`."""
    assert "AwsKeys()" == repr(AwsKeys("access", "secret", "session"))
