"""Cloud logins, each against a stub of its documented protocol."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
from aiohttp import web

from pyverno.engine.imagesource import ImageAccess
from pyverno.errors import HostError
from pyverno.registry.providers.amazon import Amazon
from pyverno.registry.providers.ambient import Ambient
from pyverno.registry.providers.azure import Azure
from pyverno.registry.providers.chain import Login, Provider, Providers, providers_of
from pyverno.registry.providers.default import Default
from pyverno.registry.providers.github import GitHub
from pyverno.registry.providers.google import Google
from pyverno.registry.providers.known import known_providers

T = TypeVar("T")
ECR = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
NOW = 1_700_000_000
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _stub(answer: Answer, work: Callable[[str], Awaitable[T]]) -> T:
    """Run `work` with the address of a stub service that gives this answer on every path."""

    async def run() -> T:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            return await work(f"http://127.0.0.1:{runner.addresses[0][1]}")
        finally:
            await runner.cleanup()

    return asyncio.run(run())


def _login(provider: Callable[[str], Provider], answer: Answer, registry: str) -> tuple[str, str, str] | None:
    async def work(base: str) -> tuple[str, str, str] | None:
        found = await provider(base).login(registry)
        return found and (found.credential.username, found.credential.password, found.credential.identity_token)

    return _stub(answer, work)


async def _google(request: web.Request) -> web.StreamResponse:
    assert (request.headers["Metadata-Flavor"], request.path.rsplit("/", 1)[1]) == ("Google", "token")
    return web.json_response({"access_token": "of-google", "expires_in": 1200, "token_type": "Bearer"})


def test_google_gives_the_token_of_the_service_account() -> None:
    """The request to the metadata server has its mandatory header."""
    found = _login(lambda base: Google(Ambient({"GCE_METADATA_HOST": base[7:]})), _google, "eu.gcr.io")
    assert ("oauth2accesstoken", "of-google", "") == found


def test_github_gives_the_token_of_the_environment_to_its_own_registry_only() -> None:
    """Without a token there is no credential."""

    async def work() -> list[object]:
        names = []
        for environment in ({"GITHUB_TOKEN": "of-github"}, {}):
            providers = known_providers(Ambient(environment))
            found = await providers.sources(["github"], "ghcr.io")
            names.append([credential.password for each in found for _, credential in each.entries])
        return [*names, list(await known_providers(Ambient({"GITHUB_TOKEN": "x"})).sources(["github"], "ghcr.io.evil"))]

    assert [["of-github"], [], []] == asyncio.run(work())


def test_azure_exchanges_the_token_of_the_workload_for_one_of_the_registry(tmp_path: Path) -> None:
    """The federated token goes to the tenant, the resulting token to the registry."""
    (tmp_path / "token").write_text("federated\n")
    seen: list[tuple[str, Mapping[str, str]]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        form = {name: str(value) for name, value in (await request.post()).items()}
        seen.append((request.path, form))
        if request.path == "/tenant/oauth2/v2.0/token":
            return web.json_response({"access_token": "of-entra"})
        return web.json_response({"refresh_token": "of-registry"})

    def azure(base: str) -> Azure:
        environment = {
            "AZURE_TENANT_ID": "tenant",
            "AZURE_CLIENT_ID": "client",
            "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "token"),
            "AZURE_AUTHORITY_HOST": f"{base}/",
        }
        return Azure(Ambient(environment), lambda registry: base)

    found = _login(azure, answer, "team.azurecr.io")
    assert (("", "", "of-registry"), "federated", ("/oauth2/exchange", "team.azurecr.io", "of-entra")) == (
        found,
        seen[0][1]["client_assertion"],
        (seen[1][0], seen[1][1]["service"], seen[1][1]["access_token"]),
    )


async def _amazon(request: web.Request) -> web.StreamResponse:
    if request.path == "/sts":
        form = await request.post()
        assert (form["RoleArn"], form["WebIdentityToken"]) == ("arn:aws:iam::1:role/r", "web")
        inner = "<AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken>"
        name = "AssumeRoleWithWebIdentity"
        text = f'<{name}Response xmlns="https://sts.amazonaws.com/"><{name}Result><Credentials>{inner}</Credentials>'
        return web.Response(text=f"{text}</{name}Result></{name}Response>")
    if request.path == "/latest/api/token":
        return web.Response(text="session")
    if request.path.startswith("/latest/meta-data"):
        assert request.headers["X-aws-ec2-metadata-token"] == "session"
        if request.path.endswith("/"):
            return web.Response(text="role-name")
        return web.json_response({"AccessKeyId": "A", "SecretAccessKey": "S", "Token": "T"})
    if request.path == "/container":
        return web.json_response({"AccessKeyId": "A", "SecretAccessKey": "S", "Token": "T"})
    assert request.headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=A/")
    assert (await request.json()) == {"registryIds": ["123456789012"]}
    token = base64.b64encode(b"AWS:of-ecr").decode()
    return web.json_response({"authorizationData": [{"authorizationToken": token}]})


@pytest.mark.parametrize("identity", ["environment", "web identity", "container", "instance"])
def test_amazon_gives_the_password_of_ecr(tmp_path: Path, identity: str) -> None:
    """Any identity of the process works."""
    (tmp_path / "token").write_text("web")

    def amazon(base: str) -> Amazon:
        identities = {
            "environment": {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S"},
            "web identity": {
                "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
                "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
                "AWS_ENDPOINT_URL_STS": f"{base}/sts",
            },
            "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{base}/container"},
            "instance": {"AWS_EC2_METADATA_SERVICE_ENDPOINT": base},
        }
        environment = {**identities[identity], "AWS_ENDPOINT_URL_ECR": f"{base}/ecr"}
        return Amazon(Ambient(environment), clock=lambda: NOW)

    assert ("AWS", "of-ecr", "") == _login(amazon, _amazon, ECR)


def test_a_credential_service_that_is_not_local_is_refused() -> None:
    """The environment must not send the container's identity over the network in clear text."""
    environment = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/credentials"}
    with pytest.raises(HostError, match="neither local nor reached by HTTPS"):
        asyncio.run(Amazon(Ambient(environment)).login(ECR))


def test_a_cloud_that_refuses_is_an_error_without_secrets() -> None:
    """An error never reads as "no credential"."""

    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.json_response({"error": "secret-detail"}, status=403)

    with pytest.raises(HostError, match=r"^the metadata server of Google answers 403$"):
        _login(lambda base: Google(Ambient({"GCE_METADATA_HOST": base[7:]})), refuse, "gcr.io")


def test_a_login_is_requested_once_while_it_is_valid() -> None:
    """Parallel requests for one registry share a login; after its expiry there is a new one."""
    calls: list[str] = []
    time = [0.0]

    async def counted(request: web.Request) -> web.StreamResponse:
        calls.append(request.path)
        return await _google(request)

    async def work(base: str) -> None:
        google = Google(Ambient({"GCE_METADATA_HOST": base[7:]}))
        providers = Providers({"google": google}, clock=lambda: time[0])
        await asyncio.gather(*(providers.sources(["google"], "gcr.io") for _ in range(10)))
        time[0] = 1199.0
        await providers.sources(["google"], "gcr.io")

    _stub(counted, work)
    assert 2 == len(calls)


class _Anywhere:
    """A provider of any registry."""

    def serves(self, registry: str) -> bool:
        """Return True."""
        return bool(registry)

    async def login(self, registry: str) -> Login | None:
        """Return no login for some, and an error for others."""
        if registry.startswith("bad"):
            raise HostError("refused")
        return None


def test_images_of_many_registries_leave_a_bounded_memory() -> None:
    """Tenants name the registries, and a registry may not exist."""
    providers = Providers({"any": _Anywhere()})

    async def work() -> None:
        for number in range(1500):
            with suppress(HostError):
                await providers.sources(["any"], f"{'bad' if number % 2 else 'good'}{number}.example.com")

    asyncio.run(work())
    kept = [each for each in vars(providers).values() if isinstance(each, dict)]
    assert all(len(each) <= 1024 for each in kept)


def test_an_unknown_provider_is_an_error() -> None:
    """Otherwise its images would be pulled without credentials."""
    with pytest.raises(HostError, match=r"^the credential provider `other` is not available here$"):
        asyncio.run(Providers({}).sources(["other"], "gcr.io"))


def test_the_default_provider_reads_the_configuration_of_docker(tmp_path: Path) -> None:
    """Entries with a path apply to some images only, and are skipped."""
    auths = '{"auths": {"a.example.com/team": {"username": "x"}, "a.example.com": {"username": "u", "password": "p"}}}'
    (tmp_path / "config.json").write_text(auths)
    login = asyncio.run(Default(Ambient({"DOCKER_CONFIG": str(tmp_path)})).login("a.example.com"))
    assert login is not None
    assert "u" == login.credential.username


def test_the_providers_of_a_policy_are_those_that_it_lists() -> None:
    """Without a list the policy has no providers."""
    assert (["google"], []) == (providers_of(ImageAccess({"providers": ["google"]})), providers_of(ImageAccess()))


def test_public_images_of_amazon_need_no_login() -> None:
    """No request is sent."""
    assert asyncio.run(Amazon(Ambient({})).login("public.ecr.aws")) is None


def test_each_registry_belongs_to_one_cloud() -> None:
    """A similar host name receives no credential (CVE-2025-27403)."""
    ambient = Ambient({})
    clouds = (Google(ambient), Amazon(ambient), Azure(ambient), GitHub(ambient))
    hosts = ("gcr.io", ECR, "team.azurecr.io", "ghcr.io", f"{ECR}.evil.org", "gcr.io.evil.org", "docker.io")
    found = {host: [type(each).__name__ for each in clouds if each.serves(host)] for host in hosts}
    assert {
        "gcr.io": ["Google"],
        ECR: ["Amazon"],
        "team.azurecr.io": ["Azure"],
        "ghcr.io": ["GitHub"],
        f"{ECR}.evil.org": [],
        "gcr.io.evil.org": [],
        "docker.io": [],
    } == found
