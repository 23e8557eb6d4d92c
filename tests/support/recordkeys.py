"""The keys of an installation, as tests give them to controllers: the Secret, and seals by the same key."""

from __future__ import annotations

import base64
from typing import Final

from pyverno.controllers.state.recordkeys import RECORD_KEYS
from pyverno.engine.imageverification.recordkeys import RecordKeys
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.report.seals import ReportSeals

__all__ = ["KEYS", "SEALS", "SECRETS", "key_secret"]

SECRETS: Final = GVR("", "v1", "secrets")
_KEY: Final = b"a key that only this test installation has"
KEYS: Final = RecordKeys(_KEY)
SEALS: Final = ReportSeals(lambda: KEYS)


def key_secret() -> JSONObject:
    """Return the Secret, whose key is not rotated for a long time."""
    data = {"current": base64.b64encode(_KEY).decode(), "made": base64.b64encode(b"1700000000").decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": RECORD_KEYS}, "data": data}
