"""The options of one target, read when it is opened: from the file, and from secrets in files and in the cluster."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pyverno.cluster.access import SERVICE_ACCOUNT
from pyverno.cluster.client import Client
from pyverno.errors import DocumentError, HostError, UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, decode
from pyverno.kube.status import StatusError
from pyverno.threads import in_thread
from pyverno.ui.notifications.settings import Layer, TargetSettings

# trust rows: notification-settings

__all__ = ["Options", "Secrets"]

_SECRETS: Final = GVR("", "v1", "secrets")
_MOST_BYTES: Final = 1024 * 1024
_SECRET_KEYS: Final = frozenset(
    (
        "host",
        "port",
        "webhook",
        "channel",
        "username",
        "password",
        "from",
        "encryption",
        "apiKey",
        "apiToken",
        "token",
        "accessKeyId",
        "secretAccessKey",
        "sessionToken",
        "kmsKeyId",
        "typelessApi",
        "chatId",
        "credentials",
        "accountId",
    )
)
"""The options that a Secret can hold, as in Policy Reporter."""


class Options:
    """Options by name; every method raises UsageError that names the option, and never its value."""

    def __init__(self, target: str, values: Mapping[str, JSON]) -> None:
        """Take the name of the target for errors."""
        self._target = target
        self._values = values

    def __repr__(self) -> str:
        """Return the names alone."""
        return f"Options({', '.join(self._values)})"

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        found = self._values.get(name, default)
        if isinstance(found, int) and not isinstance(found, bool):
            return str(found)
        if not isinstance(found, str):
            raise self._wrong(name, "a text")
        return found.strip()

    def required(self, name: str) -> str:
        """Return a text that must be there."""
        found = self.text(name)
        if not found:
            raise UsageError(f"target `{self._target}` needs `{name}`: in the file, in `{name}File` or in a secret")
        return found

    def flag(self, name: str) -> bool:
        """Return true or false; without the option, false."""
        found = self._values.get(name, False)
        if isinstance(found, str) and found.strip() in ("true", "false", ""):
            return found.strip() == "true"
        if not isinstance(found, bool):
            raise self._wrong(name, "true or false")
        return found

    def number(self, name: str, default: int) -> int:
        """Return a number from 1 to 65535."""
        text = self.text(name, str(default))
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 65535):
            raise self._wrong(name, "a number from 1 to 65535")
        return int(text)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; one text is a list with commas."""
        found = self._values.get(name, [])
        items = found.split(",") if isinstance(found, str) else found
        if not isinstance(items, list) or not all(isinstance(each, str) for each in items):
            raise self._wrong(name, "a list of texts")
        return tuple(each.strip() for each in items if each.strip())

    def mapping(self, name: str) -> Mapping[str, str]:
        """Return texts by name."""
        found = self._values.get(name, {})
        if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
            raise self._wrong(name, "a mapping of texts")
        return {str(key): str(value) for key, value in found.items()}

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return one of some texts; without the option, the first."""
        found = self.text(name) or choices[0]
        if found not in choices:
            raise self._wrong(name, f"one of {', '.join(choices)}")
        return found

    def _wrong(self, name: str, what: str) -> UsageError:
        return UsageError(f"`{name}` of target `{self._target}` must be {what}")


class Secrets:
    """Reads the options of targets, with the current values of their secrets."""

    def __init__(self, client: Client | None, namespace: str = "") -> None:
        """Take the cluster with the Secrets, and their namespace (else that of the service account)."""
        self._client = client
        self._namespace = namespace

    async def options(self, target: TargetSettings) -> Options:
        """Return the options of a target; raises UsageError, or HostError for a Secret that cannot be read."""
        found: dict[str, JSON] = {}
        for layer in target.layers:
            found |= await self._layer(layer)
        return Options(target.name, found)

    async def _layer(self, layer: Layer) -> dict[str, JSON]:
        found = dict(layer.options)
        for key, value in layer.options.items():
            if key.endswith("File"):
                found.pop(key)
                if not isinstance(value, str):
                    raise UsageError(f"`{key}` must be the path of a file")
                found[key.removesuffix("File")] = await in_thread(_read, Path(value))
        if layer.mounted:
            found |= await in_thread(_read_mounted, Path(layer.mounted))
        if layer.secret:
            found |= await self._secret(layer.secret)
        return found

    async def _secret(self, name: str) -> dict[str, JSON]:
        namespace, _, own = name.rpartition("/")
        namespace = namespace or self._namespace or await in_thread(_own_namespace)
        if not namespace:
            raise UsageError(f"the namespace of Secret `{own}` is unknown: give `namespace`, or NAMESPACE/NAME")
        if self._client is None:
            raise UsageError(f"Secret `{namespace}/{own}` cannot be read without a cluster")
        try:
            body = await self._client.get(_SECRETS, own, namespace)
        except StatusError as error:
            raise HostError(f"Secret `{namespace}/{own}` cannot be read: {error.message}") from error
        data = body.get("data")
        found: dict[str, JSON] = {}
        for key, value in data.items() if isinstance(data, dict) else ():
            if key in _SECRET_KEYS and isinstance(value, str):
                try:
                    found[key] = base64.b64decode(value, validate=True).decode()
                except (binascii.Error, UnicodeDecodeError) as error:
                    raise UsageError(f"`{key}` of Secret `{namespace}/{own}` is no text") from error
        return found


def _read_mounted(path: Path) -> dict[str, JSON]:
    """Return the options of a mounted secret: a folder with a file for each key, or one file with a JSON object."""
    if path.is_dir():
        return {key: _read(path / key) for key in sorted(_SECRET_KEYS) if (path / key).is_file()}
    try:
        found = decode(_read(path))
    except DocumentError:
        found = None  # its error would show the text
    if not isinstance(found, dict):
        raise UsageError(f"`{path}` must be a folder, or a file with a JSON object")
    return {key: value for key, value in found.items() if key in _SECRET_KEYS}


def _read(path: Path) -> str:
    if path.absolute().is_relative_to(SERVICE_ACCOUNT):
        raise UsageError(f"`{path}` is our own credential, which is never sent to targets")
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode().strip()
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {(error.strerror or 'error').lower()}") from error
    except UnicodeDecodeError:
        raise UsageError(f"`{path}` is no text") from None


def _own_namespace() -> str:
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text("utf-8").strip()
    except OSError:
        return ""
