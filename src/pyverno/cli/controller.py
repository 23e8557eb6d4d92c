"""`pyverno controller`: the controllers as processes, as a Deployment runs them.

This module holds the flags, which have Kyverno's names; `pyverno.controllers` does the work.
"""

from __future__ import annotations

import os
from pathlib import Path

from pyverno.cli.groups import group
from pyverno.cli.options import Duration, flag, value
from pyverno.cli.sections import command
from pyverno.errors import UsageError

__all__ = ["controller"]

_NANOSECONDS = 1_000_000_000
_DAY = 86_400 * _NANOSECONDS
_BLOCKED = "169.254.169.254,169.254.169.253,metadata.google.internal,127.0.0.0/8,::1/128"


def _admission(
    *,
    kubeconfig: str,
    context: str,
    clientratelimitqps: float,
    clientratelimitburst: int,
    webhookserverhost: str,
    webhookserverport: int,
    serverip: str,
    serviceport: int,
    shutdowndelay: int,
    webhooktimeout: int,
    autoupdatewebhooks: bool,
    excludebootstrapresources: bool,
    forcefailurepolicyignore: bool,
    admissionreports: bool,
    protectmanagedresources: bool,
    enablepolicyexception: bool,
    exceptionnamespace: str,
    reportsserviceaccountname: str,
    backgroundserviceaccountname: str,
    casecretname: str,
    tlssecretname: str,
    renewbefore: int,
    tlskeyalgorithm: str,
    disablecertmanagercontroller: bool,
    leaderelectionretryperiod: int,
    removewebhooks: bool,
    generatevalidatingadmissionpolicy: bool,
    maxqueuedevents: int,
    omitevents: str,
    maxapicallresponselength: int,
    apicalltimeout: int,
    httpblocklist: str,
    httpallowlist: str,
    allowhttpinnamespacedpolicies: bool,
    maxglobalcontextentries: int,
    enableconfigmapcaching: bool,
    metricshost: str,
    metricsport: int,
    disablemetrics: bool,
    loggingformat: str,
    **_: object,
) -> None:
    from pyverno.cluster.access import in_cluster, load_kubeconfig
    from pyverno.cluster.egress import SCOPED_TOKEN, EgressSettings
    from pyverno.cluster.egressrules import EgressRules
    from pyverno.controllers.admission import AdmissionController, AdmissionSettings
    from pyverno.controllers.certificates import CertificateSettings
    from pyverno.controllers.events import EventSettings
    from pyverno.controllers.process import MetricsPort, run_process
    from pyverno.controllers.surroundings import SurroundingSettings
    from pyverno.controllers.webhookconfigurations import Settings
    from pyverno.webhook.documents import ExceptionSettings
    from pyverno.webhook.logs import AnswerLog, set_up_logging
    from pyverno.webhook.metrics import Metrics
    from pyverno.webhook.observers import Observers
    from pyverno.webhook.server import Limits

    if loggingformat not in ("text", "json"):
        raise UsageError(f'invalid argument "{loggingformat}" for "--loggingFormat" flag: expected text or json')
    set_up_logging(loggingformat)
    outside = bool(kubeconfig or context or os.environ.get("KUBECONFIG"))
    access = load_kubeconfig(kubeconfig, context) if outside else in_cluster()
    namespace = os.environ.get("KYVERNO_NAMESPACE") or "kyverno"
    service = os.environ.get("KYVERNO_SVC") or "kyverno-svc"
    metrics = Metrics()
    settings = AdmissionSettings(
        namespace=namespace,
        service=service,
        config_map=os.environ.get("INIT_CONFIG") or "kyverno",
        metrics_config_map=os.environ.get("METRICS_CONFIG") or "kyverno-metrics",
        address=webhookserverhost,
        port=webhookserverport,
        server=serverip,
        service_port=serviceport,
        identity=os.environ.get("KYVERNO_POD_NAME") or f"{os.uname().nodename}-{os.getpid()}",
        exceptions=ExceptionSettings(enablepolicyexception, exceptionnamespace),
        reports_account=reportsserviceaccountname,
        background_account=backgroundserviceaccountname,
        webhooks=Settings(
            timeout=webhooktimeout,
            forces_ignore=forcefailurepolicyignore,
            excludes_bootstrap=excludebootstrapresources,
            reports_admission=admissionreports,
            updates=autoupdatewebhooks,
        ),
        certificates=CertificateSettings(
            service=service,
            namespace=namespace,
            ca_secret=casecretname,
            tls_secret=tlssecretname,
            algorithm=tlskeyalgorithm,
            renew_before_days=renewbefore / _DAY,
            server=serverip,
            manages=not disablecertmanagercontroller,
        ),
        protects_managed=protectmanagedresources,
        limits=Limits(linger_seconds=shutdowndelay / _NANOSECONDS),
        lease_retry=leaderelectionretryperiod / _NANOSECONDS,
        qps=clientratelimitqps,
        burst=clientratelimitburst,
        removes_webhooks=removewebhooks,
        surroundings=SurroundingSettings(
            egress=EgressSettings(
                rules=EgressRules.read(httpblocklist.split(","), httpallowlist.split(",")),
                most_bytes=maxapicallresponselength,
                seconds=apicalltimeout / _NANOSECONDS,
                token_file=Path(os.environ.get("KYVERNO_SCOPED_TOKEN_PATH") or SCOPED_TOKEN),
            ),
            allows_http_in_namespaces=allowhttpinnamespacedpolicies,
            most_entries=maxglobalcontextentries,
            caches_config_maps=enableconfigmapcaching,
        ),
        generates_validating=generatevalidatingadmissionpolicy,
        events=EventSettings(maxqueuedevents, tuple(each.strip() for each in omitevents.split(",") if each.strip())),
    )
    work = AdmissionController(access, settings, Observers(metrics, AnswerLog()), metrics).run
    run_process(work, None if disablemetrics else MetricsPort(metrics.exposition, metricshost, metricsport))


_CLUSTER = (
    value("--kubeconfig", help="File with the access to the cluster; without it that of the pod.", metavar="FILE"),
    value("--context", help="Context of that file.", metavar="NAME"),
    value(
        "--clientRateLimitQPS", help="Requests a second to the API server; 0 for no limit.", default=100.0, type=float
    ),
    value("--clientRateLimitBurst", help="Requests at once.", default=200, type=int),
    value("--leaderElectionRetryPeriod", help="How often a lease is tried.", default="2s", type=Duration()),
)
_SERVER = (
    value("--webhookServerHost", help="Address to listen at; all by default.", metavar="ADDRESS"),
    value("--webhookServerPort", help="Port to listen at.", default=9443, type=int),
    value("--serverIP", help="HOST:PORT by which the API server reaches us from outside of the cluster."),
    value("--servicePort", help="Port of the service.", default=443, type=int),
    value(
        "--shutdownDelay",
        help="How long requests are still taken after SIGTERM, until everybody knows.",
        default="5s",
        type=Duration(),
    ),
    flag("--protectManagedResources", help="Refuse changes of what Kyverno manages by anybody else."),
)
_WEBHOOKS = (
    value("--webhookTimeout", help="Seconds that the API server waits.", default=10, type=int),
    flag("--autoUpdateWebhooks", help="Ask for what policies are about, and nothing else.", default=True),
    flag("--excludeBootstrapResources", help="Never ask about nodes and certificate requests where an error denies."),
    flag("--forceFailurePolicyIgnore", help="Let requests through when we can not be reached, whatever policies say."),
    flag("--admissionReports", help="Report on admission requests.", default=True),
    flag("--removeWebhooks", help="Take the webhook configurations away at the end; for development."),
)
_GENERATED = (
    flag(
        "--generateValidatingAdmissionPolicy",
        help="Make ValidatingAdmissionPolicies of the policies that ask for it.",
        default=True,
    ),
)
_ACCOUNTS = (
    value(
        "--reportsServiceAccountName",
        help="User that reports are made with; whether it may read what policies are about stands in their status.",
        metavar="USER",
    ),
    value(
        "--backgroundServiceAccountName",
        help="User that changes existing objects; policies that need more than it may do are refused.",
        metavar="USER",
    ),
)
_EXCEPTIONS = (
    flag("--enablePolicyException", help="Use PolicyExceptions."),
    value("--exceptionNamespace", help="The only namespace of PolicyExceptions; `*` for any.", metavar="NAME"),
)
_QUESTIONS = (
    value(
        "--maxAPICallResponseLength", help="Bytes of a service's answer; 0 for no limit.", default=10_000_000, type=int
    ),
    value("--apiCallTimeout", help="How long a service may take; 0 for no limit.", default="30s", type=Duration()),
    value(
        "--httpBlocklist",
        help="Hosts, addresses and ranges that rules may not call, with commas between them.",
        default=_BLOCKED,
        metavar="LIST",
    ),
    value("--httpAllowlist", help="URL prefixes that rules may call, and no others.", metavar="LIST"),
    flag("--allowHTTPInNamespacedPolicies", help="Let expressions of namespaced policies call services."),
    value("--maxGlobalContextEntries", help="Entries of the global context; 0 for no limit.", default=0, type=int),
    flag(
        "--enableConfigMapCaching",
        help="Keep ConfigMaps with the label cache.kyverno.io/enabled in memory.",
        default=True,
    ),
)
_CERTIFICATES = (
    value("--caSecretName", help="Secret of the certificate authority.", metavar="NAME"),
    value("--tlsSecretName", help="Secret of the server's certificate.", metavar="NAME"),
    value("--renewBefore", help="How long before its end a certificate is renewed.", default="360h", type=Duration()),
    value("--tlsKeyAlgorithm", help="ECDSA, RSA or Ed25519.", default="ECDSA"),
    flag("--disableCertManagerController", help="Leave the certificates to somebody else."),
)
_TELLING = (
    value("--maxQueuedEvents", help="How many events may wait to be written; 0 for no events.", default=1000, type=int),
    value("--omitEvents", help="Reasons of events that are left out, with commas.", metavar="REASONS"),
    value("--loggingFormat", help="Form of log lines: text or json.", default="text", metavar="FORM"),
    value("--metricsHost", help="Address of the metrics.", metavar="ADDRESS"),
    value("--metricsPort", help="Port of the metrics.", default=8000, type=int),
    flag("--disableMetrics", help="Serve no metrics."),
)

controller = group(
    "controller",
    "Run a controller in, or beside, a cluster.",
    command(
        "admission",
        "Answer the admission requests of a cluster by its policies, and keep its webhook configurations.",
        _admission,
        {
            "Cluster": _CLUSTER,
            "Server": _SERVER,
            "Webhooks": _WEBHOOKS,
            "Admission policies": _GENERATED,
            "Exceptions": _EXCEPTIONS,
            "Accounts": _ACCOUNTS,
            "What rules ask": _QUESTIONS,
            "Certificates": _CERTIFICATES,
            "Logs, events and metrics": _TELLING,
        },
        epilog="""\b
Examples:
  pyverno controller admission
  pyverno controller admission --kubeconfig ~/.kube/config --serverIP 192.0.2.1:9443
""",
    ),
)
