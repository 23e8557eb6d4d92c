"""Webhook requests as files: one each, without confidential values, within limits."""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path

import pytest

from pyverno.engine.host import NO_HOST
from pyverno.errors import UsageError
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.json import JSONObject
from pyverno.offline.library import compile_policies
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.telemetry.recording import Recorder, RecordingFiles
from pyverno.telemetry.redaction import Redaction, parse_field
from pyverno.webhook.admission import answer
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import read_route
from tests.support.webhookserver import MemoryWorld, review_body
from tests.unit.telemetry.test_payloadlog import LEAKING, POD, SECRET, WORD

WORLD = MemoryWorld(
    Policies(compile_policies([LEAKING])),
    namespaces={"default": {"metadata": {"name": "default", "labels": {"team": "red"}}}},
    roles={"ann": (("default:editor",), ("view",))},
)


def review(recorder: Recorder, body: JSONObject, uid: str = "uid-1", path: str = "/validate/fail") -> None:
    """Review a request as the webhook does, and record it."""
    raw = review_body(body)["request"] | {"userInfo": {"username": "ann"}, "namespace": "default", "uid": uid}
    request = AdmissionRequest("admission.k8s.io/v1", uid, raw, 100)
    route = read_route(path)
    assert route is not None
    recorder.answered(request, path, answer(request, route, WORLD, NO_HOST), 0)


def recorder_of(folder: Path, *, size: int = 100_000, files: int = 4) -> Recorder:
    """Return a recorder that removes the values of environment variables."""
    return Recorder(RecordingFiles(folder, size=size, files=files), Redaction([parse_field("**.env.*.value")]))


def records(folder: Path) -> list[JSONObject]:
    """Return the recorded files, oldest first."""
    return [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]


def test_a_request_is_written_with_what_rules_know_beside_it(tmp_path: Path) -> None:
    """The context has the roles of its user and the labels of its namespace."""
    recorder = recorder_of(tmp_path)
    review(recorder, POD)
    recorder.close()
    (found,) = records(tmp_path)
    assert ("AdmissionReview", POD) == (found["kind"], found["request"]["object"])
    recorded = found["recorded"]
    assert ["/validate/fail", ["default:editor"], ["view"]] == [
        recorded[key] for key in ("webhook", "roles", "clusterRoles")
    ]
    assert ({"team": "red"}, False) == (recorded["namespaceLabels"], recorded["redacted"])


def test_every_webhook_that_receives_a_request_has_a_record(tmp_path: Path) -> None:
    """Mutating and validating webhooks record the same write; readers of the files count it once."""
    recorder = recorder_of(tmp_path)
    review(recorder, POD, path="/mutate/fail")
    review(recorder, {**POD, "spec": {"changed": True}}, "uid-2")
    recorder.close()
    review(recorder, POD, "uid-3")
    assert ["/mutate/fail", "/validate/fail"] == [each["recorded"]["webhook"] for each in records(tmp_path)]


def test_a_request_that_no_policy_may_judge_is_not_written(tmp_path: Path) -> None:
    """A request of an excluded user is an example."""
    recorder = recorder_of(tmp_path)
    request = AdmissionRequest("admission.k8s.io/v1", "u", review_body(POD)["request"])
    recorder.answered(request, "/validate/fail", AdmissionOutcome(AdmissionResponse()), 0)
    recorder.close()
    assert [] == records(tmp_path)


def test_confidential_values_are_in_no_file(tmp_path: Path) -> None:
    """Sources are Secrets, the selected fields, and the messages of rules."""
    recorder = recorder_of(tmp_path)
    review(recorder, SECRET)
    container = {"name": "c", "image": "i", "env": [{"name": "P", "value": WORD}]}
    review(recorder, {**POD, "spec": {"containers": [container]}}, "uid-2")
    recorder.close()
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    assert 2 == len(written.splitlines())
    assert WORD not in written
    assert [True, True] == [each["recorded"]["redacted"] for each in records(tmp_path)]


def test_files_and_folder_are_for_their_owner_only(tmp_path: Path) -> None:
    """The umask does not matter."""
    before = os.umask(0)
    try:
        recorder = recorder_of(tmp_path / "records")
        review(recorder, POD)
        recorder.close()
    finally:
        os.umask(before)
    (path,) = (tmp_path / "records").iterdir()
    assert (0o700, 0o600) == tuple(stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path))


def test_the_oldest_files_go_when_there_are_too_many(tmp_path: Path) -> None:
    """Number and bytes stay within the limits, including files of an earlier run."""
    for number in range(6):
        (tmp_path / f"admission-{number:020d}-1.jsonl").write_bytes(b"x" * 3000)
    (tmp_path / "mine.txt").write_text("kept")
    recorder = recorder_of(tmp_path, size=4000, files=4)
    for number in range(20):
        review(recorder, POD, f"uid-{number}")
    recorder.close()
    files = sorted(tmp_path.glob("admission-*"))
    assert len(files) <= 4
    assert sum(path.stat().st_size for path in files) <= 4000
    last = [json.loads(line)["request"]["uid"] for line in files[-1].read_text().splitlines()]
    assert "uid-19" == last[-1]
    assert "kept" == (tmp_path / "mine.txt").read_text()


def test_a_request_that_does_not_fit_is_dropped_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Later requests are recorded."""
    caplog.set_level(logging.WARNING, "pyverno")
    recorder = recorder_of(tmp_path, size=4000, files=4)
    review(recorder, {**POD, "spec": {"text": "x" * 2000}})
    review(recorder, POD, "uid-2")
    recorder.close()
    assert ["uid-2"] == [each["request"]["uid"] for each in records(tmp_path)]
    assert ["it is larger than a file may be"] == [record.fields["reason"] for record in caplog.records]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_stops_no_request_and_leaves_no_half_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The reason is logged, and recording is attempted again for the next request."""
    caplog.set_level(logging.WARNING, "pyverno")
    files = RecordingFiles(tmp_path, size=4000, files=4)
    recorder = Recorder(files, Redaction())
    files._file = os.open("/dev/full", os.O_WRONLY)
    review(recorder, POD)
    recorder.close()
    assert ["No space left on device"] == [record.fields["reason"] for record in caplog.records]


def test_a_folder_that_cannot_be_made_is_refused_at_the_start(tmp_path: Path) -> None:
    """The error has the path and the reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot record requests in .*file/records"):
        RecordingFiles(tmp_path / "file" / "records", size=1, files=1)
