"""The flags of `pyverno controller admission`: names, defaults and meanings as in Kyverno, if it has the flag."""

from __future__ import annotations

from dataclasses import dataclass

from pyverno.cli.args.records import group_of, listed, number, seconds, switch, text
from pyverno.cli.controller.groups import (
    CallFlags,
    ClusterFlags,
    EventFlags,
    ExceptionFlags,
    LogFlags,
    MetricFlags,
    ProfilingFlags,
    ReportedResultFlags,
    RightsFlags,
    TracingFlags,
    UnusedSigstoreFlags,
)
from pyverno.cli.controller.imageflags import CachedImageFlags

__all__ = ["AdmissionFlags"]


@dataclass(frozen=True, slots=True)
class ServerFlags:
    """The webhook server and its clients."""

    host: str = text("--webhookServerHost", "Address to listen on; all addresses by default.", metavar="ADDRESS")
    port: int = number("--webhookServerPort", "Port to listen on.", default=9443)
    processes: int = number(
        "--webhookProcesses",
        "Number of processes that share the port, each with its own memory. Not a flag of Kyverno.",
        default=1,
    )
    server: str = text("--serverIP", "HOST:PORT of this server as seen from the API server, outside of a cluster.")
    service_port: int = number("--servicePort", "Port of the service.", default=443)
    shutdown_delay: float = seconds(
        "--shutdownDelay",
        "How long requests are still served after SIGTERM, until endpoints are updated.",
        default="5s",
    )
    client_ca: str = text(
        "--clientCAFile",
        "Require client certificates of this authority (PEM file). Not a flag of Kyverno.",
        metavar="FILE",
    )
    client_names: tuple[str, ...] = listed(
        "--clientAllowedNames",
        "With --clientCAFile: allowed names in client certificates; any by default.",
        metavar="NAMES",
    )
    protects_managed: bool = switch(
        "--protectManagedResources",
        "Refuse changes to objects that Kyverno manages, except its own.",
        env="FLAG_PROTECT_MANAGED_RESOURCES",
        is_toggle=True,
    )


@dataclass(frozen=True, slots=True)
class WebhookFlags:
    """The webhook configurations."""

    timeout: int = number("--webhookTimeout", "Timeout of the webhooks in seconds.", default=10)
    updates: bool = switch(
        "--autoUpdateWebhooks", "Limit webhook rules to the resources that policies match.", default=True
    )
    excludes_bootstrap: bool = switch(
        "--excludeBootstrapResources", "Exclude nodes and certificate requests from webhooks that fail closed."
    )
    forces_ignore: bool = switch(
        "--forceFailurePolicyIgnore",
        "Use failurePolicy Ignore for all webhooks, whatever policies set.",
        env="FLAG_FORCE_FAILURE_POLICY_IGNORE",
        is_toggle=True,
    )
    removes: bool = switch("--removeWebhooks", "Delete the webhook configurations at shutdown; for development.")


@dataclass(frozen=True, slots=True)
class GenerationFlags:
    """Policies that become admission policies of the API server."""

    validating: bool = switch(
        "--generateValidatingAdmissionPolicy",
        "Generate ValidatingAdmissionPolicies from policies that enable it.",
        default=True,
        env="FLAG_GENERATE_VALIDATING_ADMISSION_POLICY",
        is_toggle=True,
    )
    mutating: bool = switch(
        "--generateMutatingAdmissionPolicy",
        "Require MutatingAdmissionPolicies in the cluster; policies that enable them get one either way.",
        env="FLAG_GENERATE_MUTATING_ADMISSION_POLICY",
        is_toggle=True,
    )


@dataclass(frozen=True, slots=True)
class AdmissionCallFlags(CallFlags):
    """Limits of calls that rules make."""

    max_bytes: int = number(
        "--maxAPICallResponseLength",
        "Largest response of an API or service call in bytes; 0 for no limit.",
        default=10_000_000,
    )


@dataclass(frozen=True, slots=True)
class AdmissionReportFlags(ReportedResultFlags):
    """Reports about admission requests, audit, and service accounts."""

    of_admission: bool = switch("--admissionReports", "Write reports about admission requests.", default=True)
    most: int = number(
        "--maxAdmissionReports", "Limit of reports about requests; beyond it no more are written.", default=10_000
    )
    audit_workers: int = number(
        "--maxAuditWorkers", "Number of requests that Audit policies review concurrently.", default=8
    )
    audit_capacity: int = number("--maxAuditCapacity", "Capacity of the audit queue.", default=1000)
    account: str = text(
        "--reportsServiceAccountName",
        "User of the reports controller; the status of policies shows whether it may read their resources.",
        metavar="USER",
    )
    background_account: str = text(
        "--backgroundServiceAccountName",
        "User of the background controller; policies that need more permissions than it has are rejected.",
        metavar="USER",
    )
    cleanup_account: str = text(
        "--cleanupServiceAccountName",
        "User of the cleanup controller; cleanup policies that need more permissions are rejected. Not in Kyverno.",
        metavar="USER",
    )


@dataclass(frozen=True, slots=True)
class CertificateFlags:
    """The certificates of the webhook server."""

    ca_secret: str = text(
        "--caSecretName", "Secret with the certificate authority; derived from the service by default.", metavar="NAME"
    )
    tls_secret: str = text(
        "--tlsSecretName",
        "Secret with the certificate of the server; derived from the service by default.",
        metavar="NAME",
    )
    renew_before: float = seconds(
        "--renewBefore", "Time before expiry at which a certificate is renewed.", default="360h"
    )
    algorithm: str = text("--tlsKeyAlgorithm", "Key algorithm: ECDSA, RSA or Ed25519.", default="ECDSA", metavar="NAME")
    others_manage: bool = switch("--disableCertManagerController", "Do not create or renew certificates.")


@dataclass(frozen=True, slots=True)
class AdmissionLogFlags(LogFlags):
    """The log, and the parts of requests in it."""

    dumps_payload: bool = switch("--dumpPayload", "Log complete requests and responses, without the data of Secrets.")
    dumps_patches: bool = switch(
        "--dumpPatches",
        "Log the patches of responses, without the data of Secrets.",
        env="FLAG_DUMP_PATCHES",
        is_toggle=True,
    )
    explained_requests: str = text(
        "--explainRequests",
        "Log explanations of requests for these objects (NAMESPACE/KIND/NAME, with wildcards and commas), at most 10 a "
        "minute.",
        metavar="NAMES",
    )


@dataclass(frozen=True, slots=True)
class RecordFlags:
    """Requests written to files, for `pyverno impact` and `pyverno analyze`."""

    folder: str = text(
        "--record",
        "Folder to write admission requests to, without the data of Secrets. Not a flag of Kyverno.",
        metavar="DIR",
    )
    size: int = number("--recordMaxBytes", "With --record: bytes of all files; the oldest go first.", default=268435456)
    files: int = number("--recordMaxFiles", "With --record: number of files.", default=16)
    hidden: tuple[str, ...] = listed(
        "--recordRedact",
        "With --record: fields whose values are never written; `*` is any name or element, `**` any depth.",
        default="**.env.*.value",
        metavar="FIELDS",
    )


@dataclass(frozen=True, slots=True)
class AdmissionIgnoredFlags(UnusedSigstoreFlags):
    """Flags of Kyverno without a counterpart."""

    runtime_metrics: str = text(
        "--controllerRuntimeMetricsAddress",
        "Address of the metrics of controller-runtime.",
        metavar="ADDRESS",
        has_effect=False,
    )
    registration_timeout: float = seconds(
        "--webhookRegistrationTimeout", "Timeout of the registration of webhooks.", default="120s", has_effect=False
    )


@dataclass(frozen=True, slots=True)
class AdmissionFlags:
    """All flags of the admission controller, in the groups of its help.

    >>> AdmissionFlags().server.port
    9443
    """

    cluster: ClusterFlags = group_of("Cluster", ClusterFlags)
    server: ServerFlags = group_of("Server", ServerFlags)
    webhooks: WebhookFlags = group_of("Webhooks", WebhookFlags)
    generation: GenerationFlags = group_of("Admission policies", GenerationFlags)
    exceptions: ExceptionFlags = group_of("Exceptions", ExceptionFlags)
    rights: RightsFlags = group_of("Permissions of policies", RightsFlags)
    reports: AdmissionReportFlags = group_of("Reports and accounts", AdmissionReportFlags)
    calls: AdmissionCallFlags = group_of("Calls of rules", AdmissionCallFlags)
    certificates: CertificateFlags = group_of("Certificates", CertificateFlags)
    events: EventFlags = group_of("Events", EventFlags)
    logs: AdmissionLogFlags = group_of("Logs", AdmissionLogFlags)
    recording: RecordFlags = group_of("Recorded requests", RecordFlags)
    metrics: MetricFlags = group_of("Metrics", MetricFlags)
    tracing: TracingFlags = group_of("Tracing", TracingFlags)
    profiling: ProfilingFlags = group_of("Profiling", ProfilingFlags)
    images: CachedImageFlags = group_of("Images", CachedImageFlags)
    ignored: AdmissionIgnoredFlags = group_of("Without effect", AdmissionIgnoredFlags)
