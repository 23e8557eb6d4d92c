"""The table of controllers: one row each, with its name, its user and its constructor."""

from __future__ import annotations

from collections.abc import Callable

from kubesandbox.authentication.authenticator import service_account_user
from kubesandbox.controllers.certificatesigning import CertificateSigning, SignRequest
from kubesandbox.controllers.clusterroles import ClusterRoles
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.eventage import EventAge
from kubesandbox.controllers.garbage import GarbageCollector
from kubesandbox.controllers.loop import Controller
from kubesandbox.controllers.namespaces import Namespaces
from kubesandbox.controllers.network.services import ENDPOINTS_FORM, SLICES_FORM, ServiceFollower
from kubesandbox.controllers.nodes.kubelet import Kubelet
from kubesandbox.controllers.nodes.node import NODE, THE_NODE, NodeKeeper
from kubesandbox.controllers.nodes.scheduler import Scheduler
from kubesandbox.controllers.nodes.tainteviction import TaintEviction
from kubesandbox.controllers.policychecks import PolicyChecks
from kubesandbox.controllers.quotas import Quotas
from kubesandbox.controllers.serviceaccounts import InEachNamespace, TokenSecrets, default_account, root_certificate
from kubesandbox.controllers.storage.volumes import THE_CLASS, Claims, Volumes
from kubesandbox.controllers.workloads.cronjobs import CronJobs
from kubesandbox.controllers.workloads.daemonsets import DaemonSets
from kubesandbox.controllers.workloads.deployments import Deployments
from kubesandbox.controllers.workloads.disruption import DisruptionBudgets
from kubesandbox.controllers.workloads.jobs import Jobs
from kubesandbox.controllers.workloads.replicasets import ReplicaSets
from kubesandbox.controllers.workloads.statefulsets import StatefulSets
from kubesandbox.storage.store import Key
from pyverno.engine.request import User
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["CONTROLLERS", "ControllerSettings", "ControllerSpec"]


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of controllers beside the server.

    `certificate` is that of the authority (PEM), `sign_token` makes the token of a ServiceAccount for the name of a
    Secret, `sign_request` signs certificates; without it CertificateSigningRequests stay unanswered.
    """

    kube_version: str
    certificate: str
    sign_token: Callable[[JSONObject, str], str]
    sign_request: SignRequest | None = None


Build = Callable[[ControllerContext, ControllerSettings], Controller]


@dataclass(frozen=True, slots=True)
class ControllerSpec:
    """One controller: `name` is also that of its ServiceAccount unless it has a `user` of its own.

    `component` and `host` are those of its events; `first` are keys that it works on at the start.
    """

    name: str
    build: Build
    component: str = ""
    user: User | None = None
    host: str = ""
    is_of_node: bool = False
    first: tuple[Key, ...] = ()


_NODE_USER = User(f"system:node:{NODE}", ("system:nodes",))
_SCHEDULER = User("system:kube-scheduler")
_NODE_CONTROLLER = service_account_user("kube-system", "node-controller")
_SERVER = User("system:apiserver", ("system:masters",))
_MANAGER = User("system:kube-controller-manager")

CONTROLLERS: tuple[ControllerSpec, ...] = (
    ControllerSpec("namespace-controller", lambda context, _: Namespaces(context)),
    ControllerSpec("service-account-controller", lambda context, _: InEachNamespace(context, default_account())),
    ControllerSpec(
        "root-ca-cert-publisher", lambda context, around: InEachNamespace(context, root_certificate(around.certificate))
    ),
    ControllerSpec(
        "tokens-controller",
        lambda context, around: TokenSecrets(context, around.sign_token, around.certificate),
        user=_MANAGER,
    ),
    ControllerSpec(
        "generic-garbage-collector", lambda context, _: GarbageCollector(context), "garbage-collector-controller"
    ),
    ControllerSpec("clusterrole-aggregation-controller", lambda context, _: ClusterRoles(context)),
    ControllerSpec("deployment-controller", lambda context, _: Deployments(context), "deployment-controller"),
    ControllerSpec("replicaset-controller", lambda context, _: ReplicaSets(context), "replicaset-controller"),
    ControllerSpec("statefulset-controller", lambda context, _: StatefulSets(context), "statefulset-controller"),
    ControllerSpec("daemon-set-controller", lambda context, _: DaemonSets(context), "daemonset-controller"),
    ControllerSpec("job-controller", lambda context, _: Jobs(context), "job-controller"),
    ControllerSpec("cronjob-controller", lambda context, _: CronJobs(context), "cronjob-controller"),
    ControllerSpec(
        "endpoint-controller", lambda context, _: ServiceFollower(context, ENDPOINTS_FORM), "endpoint-controller"
    ),
    ControllerSpec(
        "endpointslice-controller",
        lambda context, _: ServiceFollower(context, SLICES_FORM),
        "endpoint-slice-controller",
    ),
    ControllerSpec("disruption-controller", lambda context, _: DisruptionBudgets(context), "controllermanager"),
    ControllerSpec(
        "persistent-volume-binder",
        lambda context, _: Claims(context),
        "persistentvolume-controller",
        first=(THE_CLASS,),
    ),
    ControllerSpec("persistent-volume-reclaimer", lambda context, _: Volumes(context), user=_MANAGER),
    ControllerSpec("resourcequota-controller", lambda context, _: Quotas(context)),
    ControllerSpec(
        "certificate-controller",
        lambda context, around: CertificateSigning(context, around.sign_request),
    ),
    ControllerSpec(
        "policy-type-checker", lambda context, around: PolicyChecks(context, around.kube_version), user=_MANAGER
    ),
    ControllerSpec(
        "taint-eviction-controller",
        lambda context, _: TaintEviction(context),
        "taint-eviction-controller",
        user=_NODE_CONTROLLER,
    ),
    ControllerSpec("event-age", lambda context, _: EventAge(context), user=_SERVER),
    ControllerSpec(
        "node",
        lambda context, around: NodeKeeper(context, kube_version=around.kube_version),
        "kubelet",
        user=_NODE_USER,
        host=NODE,
        is_of_node=True,
        first=(THE_NODE,),
    ),
    ControllerSpec(
        "scheduler", lambda context, _: Scheduler(context), "default-scheduler", user=_SCHEDULER, is_of_node=True
    ),
    ControllerSpec(
        "kubelet", lambda context, _: Kubelet(context), "kubelet", user=_NODE_USER, host=NODE, is_of_node=True
    ),
)
