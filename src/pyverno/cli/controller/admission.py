"""The work of `pyverno controller admission`: settings from flags and environment, and the process."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.cli.args.records import packed
from pyverno.cli.controller.services import (
    DAY_SECONDS,
    begin_process,
    key_algorithm,
    metrics_services,
    namespace_of,
    profiling_services,
    read_words,
    shared_values,
    tracing_services,
)
from pyverno.cluster.access import Access
from pyverno.controllers.admission.auditpass import AuditSettings
from pyverno.controllers.admission.controller import AdmissionController, AdmissionSettings
from pyverno.controllers.admission.reports import ReportSettings
from pyverno.controllers.certificates.secrets import CertificateSettings
from pyverno.controllers.runtime.process import Service, run_process
from pyverno.controllers.runtime.processgroup.processes import Processes, can_share_ports
from pyverno.controllers.webhooks.configurations import Settings
from pyverno.errors import UsageError
from pyverno.telemetry.logs import AnswerLog
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import Observer, Observers
from pyverno.telemetry.payloadlog import PayloadLog
from pyverno.webhook.policyreviews import ExceptionSettings
from pyverno.webhook.server import Limits
from pyverno.webhook.tls import Clients

if TYPE_CHECKING:
    from pyverno.cli.controller.admissionflags import AdmissionFlags
    from pyverno.controllers.runtime.processgroup.peers import Peers

# trust rows: environment, named-file

__all__ = ["assembled", "run_admission", "settings_of"]

_MAX_PROCESSES = 64
_LEAST_FILE = 65536
_COMMAND = (sys.executable, "-P", "-m", "pyverno.cli.controller.process")
"""The command of one of several processes; -P keeps modules of the working directory out of the import path."""


def run_admission(flags: AdmissionFlags) -> None:
    """Run until a signal; raises UsageError for unusable flags, HostError when a task fails."""
    access = begin_process(flags, "admission")
    settings = settings_of(flags, os.environ)
    if flags.server.processes > 1:
        processes = Processes(_COMMAND, {"flags": packed(flags)}, flags.server.processes)
        run_process(processes.run, list(metrics_services(flags, access, processes)))
    else:
        metrics = Metrics()
        controller, services = assembled(flags, access, settings, metrics)
        run_process(controller.run, [*metrics_services(flags, access, metrics), *services])


def assembled(
    flags: AdmissionFlags,
    access: Access,
    settings: AdmissionSettings,
    metrics: Metrics,
    peers: Peers | None = None,
) -> tuple[AdmissionController, list[Service]]:
    """Return a controller and the services beside it, except metrics; `peers` are the other processes."""
    given = flags.logs
    observers: list[Observer] = [metrics, AnswerLog()]
    if given.dumps_payload or given.dumps_patches:
        observers.append(PayloadLog(payloads=given.dumps_payload, patches=given.dumps_patches))
    if given.explained_requests:
        from pyverno.telemetry.explanationlog import ExplanationLog  # few controllers explain

        observers.append(ExplanationLog([each.strip() for each in given.explained_requests.split(",") if each.strip()]))
    services: list[Service] = list(profiling_services(flags, 1 if peers is None else peers.number))
    if flags.recording.folder:
        observers.append(_recorder(flags))
    for tracing in tracing_services(flags, access, "kyverno-admission-controller"):
        observers.append(tracing.observer)
        services.append(tracing)
    return AdmissionController(access, settings, Observers(*observers), metrics, peers), services


def _recorder(flags: AdmissionFlags) -> Observer:
    """Return the recorder of requests; raises UsageError for an unusable folder or limit."""
    from pyverno.telemetry.recording import Recorder, RecordingFiles  # few controllers record
    from pyverno.telemetry.redaction import Redaction, parse_field

    given, processes = flags.recording, flags.server.processes
    if given.files <= processes:
        raise UsageError(f"--recordMaxFiles must exceed the number of processes ({processes})")
    if given.size < given.files * _LEAST_FILE:
        raise UsageError(f"--recordMaxBytes must allow {_LEAST_FILE} bytes for each of {given.files} files")
    files = RecordingFiles(Path(given.folder), size=given.size, files=given.files)
    return Recorder(files, Redaction([parse_field(each) for each in given.hidden]))


def settings_of(flags: AdmissionFlags, environment: Mapping[str, str]) -> AdmissionSettings:
    """Return the settings of a controller; raises UsageError for an invalid value."""
    namespace = namespace_of(environment)
    service = environment.get("KYVERNO_SVC") or "kyverno-svc"
    server = flags.server
    _check_processes(server.processes, server.port)
    return AdmissionSettings(
        **shared_values(flags, environment, flags.images),
        service=service,
        address=server.host,
        port=server.port,
        server=server.server,
        service_port=server.service_port,
        exceptions=ExceptionSettings(flags.exceptions.enabled, flags.exceptions.namespace),
        reports_account=flags.reports.account,
        background_account=flags.reports.background_account,
        cleanup_account=flags.reports.cleanup_account,
        audit=AuditSettings(flags.reports.audit_workers, flags.reports.audit_capacity),
        reports=ReportSettings(
            flags.reports.of_admission,
            read_words(flags.reports.types, ReportSettings().types, "--enableReporting"),
            read_words(flags.reports.statuses, ReportSettings().statuses, "--allowedResults"),
            flags.reports.most,
        ),
        webhooks=Settings(
            timeout=flags.webhooks.timeout,
            forces_ignore=flags.webhooks.forces_ignore,
            excludes_bootstrap=flags.webhooks.excludes_bootstrap,
            reports_admission=flags.reports.of_admission,
            updates=flags.webhooks.updates,
        ),
        certificates=_certificates(flags, service, namespace),
        protects_managed=server.protects_managed,
        clients=_clients(flags),
        limits=Limits(linger_seconds=server.shutdown_delay),
        removes_webhooks=flags.webhooks.removes,
        deployment=environment.get("KYVERNO_DEPLOYMENT") or "",
        generates_validating=flags.generation.validating,
        generates_mutating=flags.generation.mutating,
    )


def _check_processes(count: int, port: int) -> None:
    """Raise UsageError for a number of processes that cannot be run."""
    if not 1 <= count <= _MAX_PROCESSES:
        expected = f"1 to {_MAX_PROCESSES}"
        raise UsageError(f'invalid argument "{count}" for "--webhookProcesses" flag: expected {expected}')
    if count > 1 and not port:
        raise UsageError("--webhookProcesses needs a fixed --webhookServerPort")
    if count > 1 and not can_share_ports():
        raise UsageError("--webhookProcesses needs a system on which processes can share a port")


def _clients(flags: AdmissionFlags) -> Clients:
    given = flags.server
    if not given.client_ca:
        if given.client_names:
            raise UsageError("--clientAllowedNames needs --clientCAFile")
        return Clients()
    try:
        authority = Path(given.client_ca).read_bytes()
        ssl.create_default_context(cadata=authority.decode("ascii"))
    except (OSError, UnicodeDecodeError, ssl.SSLError) as error:
        raise UsageError(f"`{given.client_ca}` of --clientCAFile cannot be used: {error}") from None
    return Clients(authority, given.client_names)


def _certificates(flags: AdmissionFlags, service: str, namespace: str) -> CertificateSettings:
    given = flags.certificates
    return CertificateSettings(
        service=service,
        namespace=namespace,
        ca_secret=given.ca_secret,
        tls_secret=given.tls_secret,
        algorithm=key_algorithm("--tlsKeyAlgorithm", given.algorithm),
        renew_before_days=given.renew_before / DAY_SECONDS,
        server=flags.server.server,
        manages=not given.others_manage,
    )
