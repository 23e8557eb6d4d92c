"""Kinesis and Security Hub get signed requests of their own form."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import Any

import pytest
from aiohttp import web

from pyverno.errors import UsageError
from pyverno.registry.awssignature import AwsKeys, Signing, sign
from pyverno.ui.notifications.delivery import DeliveryError
from pyverno.ui.notifications.notice import RESOLVED, Notice
from tests.support.notifications import HOSTILE, deliver, notice
from tests.support.services import Asked, Service

KEYS = "accessKeyId: AKID, secretAccessKey: S3CRET, region: eu-west-1"


def send(target: str, *notices: Notice, answer: dict[str, Any] | None = None) -> tuple[Asked, str]:
    """Return the request that a stub got, and the stub's address."""

    async def play() -> tuple[Asked, str]:
        answers = {path: lambda: web.json_response(answer or {}) for path in ("/", "/findings/import")}
        async with Service(answers) as service:
            await deliver(f"targets: [{{{target}, endpoint: '{service.url('')}', {KEYS}}}]", notices)
            (asked,) = service.asked
            return asked, service.url("").rstrip("/")

    return asyncio.run(play())


def is_signed(asked: Asked, url: str, service: str) -> bool:
    """Return whether the signature of a request is valid, recomputed from the received data."""
    found = re.search(r"SignedHeaders=([^,]+), Signature=(\w+)", asked.headers["Authorization"])
    assert found is not None
    headers = {name: value for name, value in asked.headers.items() if name.lower() in found[1].split(";")}
    moment = headers.pop("X-Amz-Date")
    headers.pop("Host")
    from datetime import UTC, datetime

    now = int(datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp())
    keys, signing = AwsKeys("AKID", "S3CRET"), Signing(service, "eu-west-1", now)
    again = sign("POST", f"{url}{asked.path}", headers, asked.body, keys=keys, signing=signing)
    return again["Authorization"] == asked.headers["Authorization"]


def test_kinesis_gets_a_record_for_each_notice() -> None:
    """Records of one result have one key, so that they stay in order."""
    first, second = notice(message=HOSTILE), notice(RESOLVED, message=HOSTILE)
    asked, url = send("type: kinesis, streamName: s", first, second)
    body = json.loads(asked.body)
    assert ("s", "Kinesis_20131202.PutRecords") == (body["StreamName"], asked.headers["X-Amz-Target"])
    assert [first.key] * 2 == [each["PartitionKey"] for each in body["Records"]]
    assert HOSTILE == json.loads(base64.b64decode(body["Records"][0]["Data"]))["message"]
    assert is_signed(asked, url, "kinesis")


def test_security_hub_archives_what_is_resolved() -> None:
    """The finding has the same id; all fields that AWS wants are there."""
    asked, url = send("type: securityHub, accountId: '123456789012', companyName: c", notice(), notice(RESOLVED))
    opened, resolved = json.loads(asked.body)["Findings"]
    assert ("/findings/import", opened["Id"]) == (asked.path, resolved["Id"])
    assert ("ACTIVE", "ARCHIVED") == (opened["RecordState"], resolved["RecordState"])
    assert "arn:aws:securityhub:eu-west-1:123456789012:product/123456789012/default" == opened["ProductArn"]
    assert {"Label": "HIGH"} == opened["Severity"]
    assert is_signed(asked, url, "securityhub")


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("type: kinesis, streamName: s", {"FailedRecordCount": 1}),
        ("type: securityHub, accountId: '123456789012'", {"FailedCount": 1}),
    ],
)
def test_a_notice_that_is_refused_is_an_error(target: str, answer: dict[str, Any]) -> None:
    """The services answer 200 and count in the body."""
    with pytest.raises(DeliveryError, match="1 of the notices are refused"):
        send(target, notice(), answer=answer)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("type: kinesis, streamName: 'a/b'", "`streamName` is no name"),
        ("type: securityHub, accountId: '12'", "twelve digits"),
    ],
)
def test_names_are_nothing_but_names(target: str, reason: str) -> None:
    """Names become parts of requests, so other characters are refused."""
    with pytest.raises(UsageError, match=reason):
        send(target, notice())
