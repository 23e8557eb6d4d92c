"""Address and identity for an API server, read from a kubeconfig or from a pod's service account.

Nothing is contacted here; credentials that have to be fetched (`exec` plugins, token files) are fetched when a request
needs them. This module must never print or log a credential.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pyverno.errors import DocumentError, UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.value import dataclass, field

# trust rows: environment, kubeconfig

__all__ = ["Access", "ExecPlugin", "find_access", "in_cluster", "load_kubeconfig"]

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints a credential (client.authentication.k8s.io)."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    provides_cluster_info: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """An API server and an identity there.

    `server` is a URL without a path's last slash. Certificates and keys are PEM. `token` is fixed,
    `token_file` is read again when it changes, `exec_plugin` is run again when its credential expires.
    """

    server: str
    ca: bytes = b""
    skips_verification: bool = False
    server_name: str = ""
    proxy: str = ""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    exec_plugin: ExecPlugin | None = None
    impersonate: JSONObject = field(default_factory=dict)
    namespace: str = "default"

    def impersonation(self) -> Iterator[tuple[str, str]]:
        """Yield the request headers of the user to act as.

        >>> [*Access("https://api:6443", impersonate={"as": "bob", "as-groups": ["ops"]}).impersonation()]
        [('Impersonate-User', 'bob'), ('Impersonate-Group', 'ops')]
        """
        written = self.impersonate
        if "as" in written:
            yield "Impersonate-User", str(written["as"])
        if "as-uid" in written:
            yield "Impersonate-Uid", str(written["as-uid"])
        for group in written.get("as-groups") or ():
            yield "Impersonate-Group", str(group)
        for key, values in (written.get("as-user-extra") or {}).items():
            for value in values:
                yield f"Impersonate-Extra-{key}", str(value)


def in_cluster(folder: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] | None = None) -> Access:
    """Return the access that a pod has by its service account; raises UsageError outside of a cluster."""
    variables = os.environ if environment is None else environment
    host, port = variables.get("KUBERNETES_SERVICE_HOST", ""), variables.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port or not (folder / "token").is_file():
        raise UsageError("this does not run inside of a cluster: give a kubeconfig with --kubeconfig or KUBECONFIG")
    name = f"[{host}]" if ":" in host else host
    namespace = folder / "namespace"
    return Access(
        server=f"https://{name}:{port}",
        ca=(folder / "ca.crt").read_bytes(),
        token_file=folder / "token",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
    )


def find_access(
    path: str = "",
    context: str = "",
    environment: Mapping[str, str] | None = None,
    folder: Path = SERVICE_ACCOUNT,
) -> Access:
    """Return the access of a kubeconfig; in a pod without one, the access of its service account.

    Raises as the two do.
    """
    variables = os.environ if environment is None else environment
    is_named = path or context or variables.get("KUBECONFIG")
    if not is_named and variables.get("KUBERNETES_SERVICE_HOST") and (folder / "token").is_file():
        return in_cluster(folder, variables)
    return load_kubeconfig(path, context, variables)


def load_kubeconfig(path: str = "", context: str = "", environment: Mapping[str, str] | None = None) -> Access:
    """Read the access that a context of a kubeconfig describes.

    Without a path, `KUBECONFIG` names files (of several, the first that has an entry wins, as for kubectl), and after
    that `~/.kube/config`. Raises UsageError or DocumentError with the file and what is missing in it.
    """
    variables = os.environ if environment is None else environment
    config = _Config.of(_paths(path, variables))
    name = context or config.current
    if not name:
        raise UsageError(f"`{config.names}` has no current-context: name one with --context")
    chosen = config.entry("contexts", "context", name)
    cluster = config.entry("clusters", "cluster", _read_text(chosen.body, "cluster"))
    user = config.entry("users", "user", _read_text(chosen.body, "user")) if chosen.body.get("user") else _NOBODY
    server = _read_text(cluster.body, "server").rstrip("/")
    if urlsplit(server).scheme not in ("http", "https"):
        raise UsageError(f"cluster `{cluster.name}` of `{cluster.file}` has no server that is a URL")
    return Access(
        server=server,
        ca=cluster.data("certificate-authority"),
        skips_verification=cluster.body.get("insecure-skip-tls-verify") is True,
        server_name=_read_text(cluster.body, "tls-server-name"),
        proxy=_read_text(cluster.body, "proxy-url"),
        namespace=_read_text(chosen.body, "namespace") or "default",
        **_identity(user),
    )


def _paths(path: str, variables: Mapping[str, str]) -> list[Path]:
    if path:
        return [Path(path)]
    listed = [Path(each) for each in variables.get("KUBECONFIG", "").split(os.pathsep) if each]
    found = [each for each in listed if each.is_file()] or listed[:1]
    return found or [_home(variables) / ".kube" / "config"]


def _home(variables: Mapping[str, str]) -> Path:
    """Return the folder of the user; raises UsageError for one that would be a folder of the working folder's tree."""
    home = variables.get("HOME")
    with suppress(RuntimeError):  # the system does not know this user
        found = Path("~").expanduser() if home is None else Path(home)
        if found.is_absolute():  # guard: no kubeconfig is searched in the working folder
            return found
    raise UsageError("HOME is no absolute path: name a kubeconfig with --kubeconfig or KUBECONFIG")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A named entry and its file, to which relative paths refer."""

    name: str
    file: Path
    body: JSONObject

    def data(self, key: str) -> bytes:
        """Return the bytes of `KEY-data`, or of the file that `KEY` names, or nothing."""
        inline = _read_text(self.body, f"{key}-data")
        if inline:
            try:
                return base64.b64decode(inline, validate=True)
            except (binascii.Error, ValueError):
                raise UsageError(f"`{key}-data` of `{self.name}` in `{self.file}` is not base64") from None
        path = self.path(key)
        if path is None:
            return b""
        try:
            return path.read_bytes()
        except OSError as error:
            raise UsageError(f"`{key}` of `{self.name}` in `{self.file}`: {error.strerror}: `{path}`") from None

    def path(self, key: str) -> Path | None:
        name = _read_text(self.body, key)
        return self.file.parent / name if name else None


_NOBODY = _Entry("", Path(), {})


@dataclass(frozen=True, slots=True)
class _Config:
    """The kubeconfig files of one invocation, in order."""

    files: tuple[tuple[Path, JSONObject], ...]

    @classmethod
    def of(cls, paths: list[Path]) -> _Config:
        return cls(tuple((path, _read(path)) for path in paths))

    @property
    def names(self) -> str:
        return os.pathsep.join(str(path) for path, _ in self.files)

    @property
    def current(self) -> str:
        return next((name for _, body in self.files if (name := _read_text(body, "current-context"))), "")

    def entry(self, section: str, key: str, name: str) -> _Entry:
        for path, body in self.files:
            for item in body.get(section) or ():
                if isinstance(item, dict) and item.get("name") == name and isinstance(item.get(key), dict):
                    return _Entry(name, path, item[key])
        raise UsageError(f"`{self.names}` has no {key} `{name}`")


def _read(path: Path) -> JSONObject:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"kubeconfig `{path}` cannot be read: {error.strerror}") from None
    documents = load_documents(text, file=str(path))
    if not documents:
        return {}
    if not isinstance(documents[0].value, dict):
        raise DocumentError("a kubeconfig must be a map", location=documents[0].location())
    found: JSONObject = documents[0].value
    return found


def _identity(user: _Entry) -> dict[str, Any]:
    body = user.body
    found: dict[str, Any] = {
        "certificate": user.data("client-certificate"),
        "key": user.data("client-key"),
        "token": _read_text(body, "token"),
        "token_file": user.path("tokenFile"),
        "username": _read_text(body, "username"),
        "password": _read_text(body, "password"),
        "impersonate": {key: body[key] for key in ("as", "as-groups", "as-uid", "as-user-extra") if body.get(key)},
    }
    if body.get("auth-provider"):
        raise UsageError(f"user `{user.name}` of `{user.file}` has an auth-provider, which Kubernetes has removed")
    plugin = body.get("exec")
    if isinstance(plugin, dict):
        found["exec_plugin"] = _plugin(user, plugin)
    return found


def _plugin(user: _Entry, body: JSONObject) -> ExecPlugin:
    command = _read_text(body, "command")
    if not command:
        raise UsageError(f"user `{user.name}` of `{user.file}`: `exec` has no command")
    if os.sep in command:  # kubectl: a command with a path is looked up from the kubeconfig's folder
        command = str(user.file.parent / command)
    variables = {
        _read_text(each, "name"): _read_text(each, "value") for each in body.get("env") or () if isinstance(each, dict)
    }
    return ExecPlugin(
        command=command,
        arguments=tuple(str(each) for each in body.get("args") or ()),
        environment=variables,
        api_version=_read_text(body, "apiVersion") or "client.authentication.k8s.io/v1",
        install_hint=_read_text(body, "installHint"),
        provides_cluster_info=body.get("provideClusterInfo") is True,
    )


def _read_text(body: Mapping[str, JSON], key: str) -> str:
    found = body.get(key)
    return found if isinstance(found, str) else ""
