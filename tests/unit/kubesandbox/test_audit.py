"""Audit annotations that are kept."""

from __future__ import annotations

from kubesandbox.audit import AuditLog, AuditRecord


def record(path: str, **annotations: str) -> AuditRecord:
    """Return a record; `__` in keys stands for `/`."""
    return AuditRecord("POST", path, "jane", 201, {key.replace("__", "/"): value for key, value in annotations.items()})


def test_the_newest_requests_with_annotations_are_kept() -> None:
    """Others leave nothing behind."""
    log = AuditLog(size=2)
    for path in ("/a", "/b", "/c"):
        log.add(record(path, policy__key=path))
        log.add(record("/nothing"))
    assert ["/b", "/c"] == [each.path for each in log.records]


def test_lines_leave_out_what_every_webhook_notes() -> None:
    """Annotations about which webhook mutated are kept, but left out of the lines."""
    routine = AuditRecord("POST", "/a", "jane", 201, {"mutation.webhook.admission.k8s.io/round_0_index_0": "{}"})
    assert "" == routine.to_line()
    assert '{"p/a":"1","p/b":"\\u003cx\\u003e"}' == record("/a", p__b="<x>", p__a="1").to_line()
