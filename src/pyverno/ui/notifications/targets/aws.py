"""Kinesis and Security Hub of AWS: requests in JSON with the signature of their service."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import Final

import orjson

from pyverno.errors import UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.lazyregex import regex
from pyverno.registry.awssignature import AwsKeys, Signing, sign
from pyverno.ui.notifications.delivery import Delivery, DeliveryError
from pyverno.ui.notifications.notice import Notice, clip
from pyverno.ui.notifications.options import Options
from pyverno.ui.notifications.targets.lines import one_line
from pyverno.ui.notifications.transport import Transport, read_tls, read_url
from pyverno.ui.store.rows import as_time
from pyverno.value import replace

__all__ = ["open_kinesis", "open_security_hub"]

_NAME: Final = regex(r"[A-Za-z0-9_.-]{1,128}")
_REGION: Final = regex(r"[a-z0-9-]{1,64}")
_ACCOUNT: Final = regex(r"[0-9]{12}")
_LABELS: Final = {"critical": "CRITICAL", "high": "HIGH", "medium": "MEDIUM", "low": "LOW"}


class _Service:
    """One service of AWS in a region: sends signed requests."""

    def __init__(self, transport: Transport, options: Options, service: str) -> None:
        self.region = options.text("region") or "us-east-1"
        if _REGION.fullmatch(self.region) is None:
            raise UsageError("`region` is no name of one")
        self._transport = transport
        self._url = read_url("endpoint", options.text("endpoint") or f"https://{service}.{self.region}.amazonaws.com")
        access, secret = options.required("accessKeyId"), options.required("secretAccessKey")
        self._keys = AwsKeys(access, secret, options.text("sessionToken"))
        self._service = service

    async def call(self, path: str, headers: Mapping[str, str], body: JSON, options: Options) -> JSON:
        """Return what the service answers; raises DeliveryError."""
        url, data = replace(self._url, path=path), orjson.dumps(body)
        signing = Signing(self._service, self.region, int(time.time()))
        signed = sign("POST", f"{url.origin}{path}", headers, data, keys=self._keys, signing=signing)
        return (await self._transport.send("POST", url, data, signed, await read_tls(options))).json()


async def open_kinesis(transport: Transport, options: Options) -> Kinesis:
    """Return the target of these options; raises UsageError for a stream that cannot exist."""
    stream = options.required("streamName")
    if _NAME.fullmatch(stream) is None:
        raise UsageError("`streamName` is no name of a stream")
    return Kinesis(_Service(transport, options, "kinesis"), stream, options)


class Kinesis:
    """One stream."""

    def __init__(self, service: _Service, stream: str, options: Options) -> None:
        """Take the service and the name of the stream."""
        self._service = service
        self._stream = stream
        self._options = options

    async def send(self, delivery: Delivery) -> None:
        """Put a record for each notice; changes of one result keep their order."""
        records = [
            {
                "Data": base64.b64encode(orjson.dumps(notice.to_json(delivery.custom))).decode(),
                "PartitionKey": notice.key,
            }
            for notice in delivery.notices
        ]
        headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Kinesis_20131202.PutRecords"}
        answer = await self._service.call("/", headers, {"StreamName": self._stream, "Records": records}, self._options)
        _check("FailedRecordCount", answer)


async def open_security_hub(transport: Transport, options: Options) -> SecurityHub:
    """Return the target of these options; raises UsageError for an invalid account."""
    account = options.required("accountId")
    if _ACCOUNT.fullmatch(account) is None:
        raise UsageError("`accountId` must have twelve digits")
    names = (options.text("companyName") or "pyverno", options.text("productName") or "Policy results")
    return SecurityHub(_Service(transport, options, "securityhub"), account, names, options)


class SecurityHub:
    """The findings of one account in a region."""

    def __init__(self, service: _Service, account: str, names: tuple[str, str], options: Options) -> None:
        """Take the service, the account, and the names of company and product."""
        self._service = service
        self._account = account
        self._names = names
        self._options = options

    async def send(self, delivery: Delivery) -> None:
        """Write a finding for each notice; one that is resolved is archived."""
        findings = [self._finding(notice, delivery.custom) for notice in delivery.notices]
        headers = {"Content-Type": "application/json"}
        answer = await self._service.call("/findings/import", headers, {"Findings": findings}, self._options)
        _check("FailedCount", answer)

    def _finding(self, notice: Notice, custom: Mapping[str, str]) -> JSONObject:
        region, account = self._service.region, self._account
        fields = {"rule": notice.rule, "source": notice.source, "cluster": notice.cluster, **custom}
        at = as_time(notice.at)
        return {
            "SchemaVersion": "2018-10-08",
            "Id": notice.key,
            "ProductArn": f"arn:aws:securityhub:{region}:{account}:product/{account}/default",
            "CompanyName": self._names[0],
            "ProductName": self._names[1],
            "GeneratorId": clip(one_line(f"{notice.policy}/{notice.rule}"), 512),
            "AwsAccountId": account,
            "Types": ["Software and Configuration Checks/Kubernetes Policies"],
            "CreatedAt": at,
            "UpdatedAt": at,
            "Severity": {"Label": _LABELS.get(notice.severity, "INFORMATIONAL")},
            "Title": clip(one_line(f"{notice.policy} on {notice.resource}"), 256),
            "Description": clip(one_line(notice.message) or notice.title, 1024),
            "ProductFields": {clip(key, 128): clip(value, 2048) for key, value in fields.items() if value},
            "Resources": [
                {
                    "Type": "Other",
                    "Id": clip(one_line(f"{notice.cluster}/{notice.api_version}/{notice.resource}"), 512),
                }
            ],
            "RecordState": "ARCHIVED" if notice.is_resolved else "ACTIVE",
        }


def _check(field: str, answer: JSON) -> None:
    failed = answer.get(field, 0) if isinstance(answer, dict) else 0
    if isinstance(failed, int) and failed > 0:
        raise DeliveryError(f"{failed} of the notices are refused")
