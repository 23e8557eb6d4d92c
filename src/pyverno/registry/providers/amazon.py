"""Amazon's registries: a password from ECR, requested with the identity of the pod or of the machine."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

from pyverno.errors import HostError
from pyverno.kube.json import JSON
from pyverno.lazyregex import regex
from pyverno.registry.awssignature import AwsKeys, Signing, sign
from pyverno.registry.credentials import Credential
from pyverno.registry.providers.ambient import Ambient, CloudRequest, text_of
from pyverno.registry.providers.chain import Login

__all__ = ["Amazon", "AwsIdentity"]

_HOST: Final = regex(r"([0-9]{12})\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?")
_PUBLIC: Final = "public.ecr.aws"
_SECONDS: Final = 12 * 3600.0 - 600
_ECR: Final = "ECR"
_STS: Final = "STS"
_METADATA: Final = "the metadata service of EC2"
_AGENT: Final = "the credential service of the container"
_JSON: Final = "application/x-amz-json-1.1"
_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"})


class AwsIdentity:
    """The keys of this process: environment, web identity, container or instance, in the order of Amazon's tools."""

    def __init__(self, ambient: Ambient) -> None:
        """Take the identity of the process."""
        self._ambient = ambient

    async def keys(self, region: str) -> AwsKeys:
        """Return keys; raises HostError when there is no identity."""
        read = self._ambient.text
        if read("AWS_ACCESS_KEY_ID") and read("AWS_SECRET_ACCESS_KEY"):
            return AwsKeys(read("AWS_ACCESS_KEY_ID"), read("AWS_SECRET_ACCESS_KEY"), read("AWS_SESSION_TOKEN"))
        if read("AWS_WEB_IDENTITY_TOKEN_FILE") and read("AWS_ROLE_ARN"):
            return await self._web_identity(region)
        if read("AWS_CONTAINER_CREDENTIALS_FULL_URI") or read("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
            return await self._container()
        return await self._instance()

    async def _web_identity(self, region: str) -> AwsKeys:
        read = self._ambient.text
        form = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": read("AWS_ROLE_ARN"),
            "RoleSessionName": read("AWS_ROLE_SESSION_NAME") or "pyverno",
            "WebIdentityToken": self._ambient.read_file(read("AWS_WEB_IDENTITY_TOKEN_FILE"), "the web identity token"),
        }
        url = read("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.amazonaws.com{_china(region)}/"
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        reply = await self._ambient.send(CloudRequest("POST", url, _STS, headers, urlencode(form).encode()))
        if reply.status != 200:
            raise HostError(f"{_STS} answers {reply.status}")
        return _keys_of_xml(reply.body)

    async def _container(self) -> AwsKeys:
        read = self._ambient.text
        relative = read("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        url = f"http://169.254.170.2{relative}" if relative else read("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        if parts.scheme != "https" and host not in _LOCAL:
            raise HostError(f"{_AGENT} is neither local nor reached by HTTPS")
        token, path = read("AWS_CONTAINER_AUTHORIZATION_TOKEN"), read("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        if path:
            token = self._ambient.read_file(path, "the token of the container")
        headers = {"Authorization": token} if token else {}
        return _keys_of(await self._ambient.ask(CloudRequest("GET", url, _AGENT, headers)), _AGENT)

    async def _instance(self) -> AwsKeys:
        base = (self._ambient.text("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254").rstrip("/")
        seconds = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
        token = await self._fetch_text(CloudRequest("PUT", f"{base}/latest/api/token", _METADATA, seconds))
        headers = {"X-aws-ec2-metadata-token": token}
        place = f"{base}/latest/meta-data/iam/security-credentials/"
        role = (await self._fetch_text(CloudRequest("GET", place, _METADATA, headers))).split("\n", 1)[0].strip()
        return _keys_of(await self._ambient.ask(CloudRequest("GET", f"{place}{role}", _METADATA, headers)), _METADATA)

    async def _fetch_text(self, request: CloudRequest) -> str:
        reply = await self._ambient.send(request)
        if reply.status != 200 or not reply.body.isascii():
            raise HostError(f"{request.what} answers {reply.status}")
        return reply.body.decode("ascii")


class Amazon:
    """Elastic Container Registry, private and public."""

    def __init__(self, ambient: Ambient, clock: Callable[[], float] = time.time) -> None:
        """Take the identity of the process, and the clock that requests are signed with."""
        self._ambient = ambient
        self._identity = AwsIdentity(ambient)
        self._clock = clock

    def serves(self, registry: str) -> bool:
        """Return whether a host is one of Amazon's registries.

        >>> amazon = Amazon(Ambient({}))
        >>> amazon.serves("123456789012.dkr.ecr.eu-west-1.amazonaws.com"), amazon.serves("ecr.amazonaws.com.evil.org")
        (True, False)
        """
        return registry == _PUBLIC or _HOST.fullmatch(registry) is not None

    async def login(self, registry: str) -> Login | None:
        """Return the password of a registry; without an identity, images of the public registry need none."""
        found = _HOST.fullmatch(registry)
        if found is None:
            return None  # public.ecr.aws needs no login to read
        region = found[2]
        keys = await self._identity.keys(region)
        url = self._ambient.text("AWS_ENDPOINT_URL_ECR") or f"https://api.ecr.{region}.amazonaws.com{found[3] or ''}/"
        body = b'{"registryIds":["%s"]}' % found[1].encode()
        target = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"
        signing = Signing("ecr", region, int(self._clock()))
        headers = sign("POST", url, {"Content-Type": _JSON, "X-Amz-Target": target}, body, keys=keys, signing=signing)
        answer = await self._ambient.ask(CloudRequest("POST", url, _ECR, headers, body))
        return Login(_credential(answer.get("authorizationData")), _SECONDS)


def _credential(data: JSON) -> Credential:
    first = data[0] if isinstance(data, list) and data else None
    token = first.get("authorizationToken") if isinstance(first, dict) else None
    try:
        pair = base64.b64decode(token, validate=True).decode("ascii") if isinstance(token, str) else ""
    except (binascii.Error, ValueError):
        pair = ""
    name, colon, password = pair.partition(":")
    if not colon:
        raise HostError(f"{_ECR} answers with no authorization token")
    return Credential(name, password, source="provider amazon")


def _keys_of(body: JSON, what: str) -> AwsKeys:
    names = ("AccessKeyId", "SecretAccessKey", "Token")
    access, secret, session = (text_of(body, name, what) for name in names)
    return AwsKeys(access, secret, session)


def _keys_of_xml(body: bytes) -> AwsKeys:
    if b"<!" in body:
        raise HostError(f"{_STS} answers with a document type, which its answers do not have")
    try:
        root = ElementTree.fromstring(body)  # noqa: S314 - no document type, so no entities
    except ElementTree.ParseError:
        raise HostError(f"{_STS} answers with no XML") from None
    found = {each.tag.rpartition("}")[2]: each.text or "" for each in root.iter()}
    try:
        return AwsKeys(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])
    except KeyError as error:
        raise HostError(f"{_STS} answers without `{error.args[0]}`") from None


def _china(region: str) -> str:
    return ".cn" if region.startswith("cn-") else ""
