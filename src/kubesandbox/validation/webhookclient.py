"""Addresses and review versions of webhooks, alike for admission and conversion."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from kubesandbox.objects.fielderrors import invalid, required
from kubesandbox.validation.names import dns_label_1035_problems, dns_subdomain_problems
from pyverno.kube.json import JSONObject
from pyverno.kube.status import FieldError

__all__ = ["REVIEW_VERSIONS", "client_config", "review_versions"]

REVIEW_VERSIONS: Final = ("v1", "v1beta1")
"""Versions of AdmissionReview and ConversionReview that the server can write."""

_URL_FORM: Final = "; desired format: https://host[/path]"


def client_config(config: JSONObject, path: str, errors: list[FieldError]) -> None:
    """Check a `clientConfig`: a URL or a service."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        errors.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        _url(str(url), f"{path}.url", errors)
    elif service is not None:
        _service(service, f"{path}.service", errors)


def _url(url: str, path: str, errors: list[FieldError]) -> None:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        errors.append(required(path, f"url must be a valid URL: {error}{_URL_FORM}"))
        return
    if parts.scheme != "https":
        errors.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"))
    if not parts.hostname:
        errors.append(invalid(path, "", f"host must be specified{_URL_FORM}"))
    if parts.username is not None:
        errors.append(invalid(path, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))


def _service(service: JSONObject, path: str, errors: list[FieldError]) -> None:
    for key in ("name", "namespace"):
        if not service.get(key):
            errors.append(required(f"{path}.{key}"))
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        what = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(invalid(f"{path}.port", port, what))
    text = str(service.get("path") or "/")
    if text == "/":
        return
    if not text.startswith("/"):
        errors.append(invalid(f"{path}.path", text, "must start with a '/'"))
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(invalid(f"{path}.path", text, f"segment[{index}] may not be empty"))
        else:
            problems = dns_subdomain_problems(step)
            errors.extend(invalid(f"{path}.path", text, f"segment[{index}]: {problem}") for problem in problems)


def review_versions(versions: list[str], path: str, errors: list[FieldError], *, missing: str = "") -> None:
    """Check the versions of reviews that a webhook takes; `missing` is the error text when there are none."""
    if not versions:
        errors.append(required(path, missing))
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        problems = dns_label_1035_problems(version)
        errors.extend(invalid(f"{path}[{index}]", version, problem) for problem in problems)
    if not any(version in REVIEW_VERSIONS for version in versions):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
