"""The second half of `make demo`: a cluster in this process, policies at work in it, and a person at kubectl.

The person is real kubectl where it is installed (1.27 or newer), and `scripts.kubectl_stand_in` where it is not. Every
answer is checked; what is printed came back from the cluster.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.kubectl_stand_in import run as stand_in

ROOT = Path(__file__).resolve().parent.parent
MANIFESTS = "docs/guide/demo/cluster"
POLICIES = "docs/guide/demo/policies"
REPORT = ROOT / "build" / "demo" / "report.html"
_WAIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Act:
    """One command, whether it must succeed, and what it must print.

    `settles` waits until the policy is at work. One that `waits` is given until it prints what it must: what follows
    from a request takes a moment.
    """

    arguments: tuple[str, ...]
    succeeds: bool = True
    prints: tuple[str, ...] = ()
    settles: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """Some commands that belong together."""

    title: str
    why: str
    acts: tuple[Act, ...]


_DENIAL = (
    'admission webhook "validate.kyverno.svc-fail" denied the request: \n'
    "\n"
    "resource Deployment/default/nginx was blocked due to the following policies \n"
    "\n"
    "require-labels:\n"
    "  autogen-check-team: 'validation error: label ''team'' is required. "
    "rule autogen-check-team failed at path /spec/template/metadata/labels/team/'"
)

_SERVER = "server: aHR0cHM6Ly9wcm9kLmV4YW1wbGUuY29tOjY0NDM="
_ONE = "eyJhdXRocyI6eyJyZWdpc3RyeS5leGFtcGxlLmNvbSI6eyJhdXRoIjoib25lIn19fQ=="
_TWO = "eyJhdXRocyI6eyJyZWdpc3RyeS5leGFtcGxlLmNvbSI6eyJhdXRoIjoidHdvIn19fQ=="
_DIGEST = "settings: 819cceaa52adb92b320363b3cad8e884d97a27d14150bbf2d6167880717b9a89"

SCENES = (
    Scene(
        "A policy refuses",
        "Every pod needs a team. The Deployment is refused for the pods that it would make.",
        (
            Act(("create", "-f", f"{POLICIES}/require-labels.yaml"), prints=("require-labels created",), settles=True),
            Act(("create", "deployment", "nginx", "--image=nginx"), succeeds=False, prints=(_DENIAL,)),
            Act(("run", "nginx", "--image", "nginx", "--labels", "team=backend"), prints=("pod/nginx created",)),
            Act(("delete", "-f", f"{POLICIES}/require-labels.yaml"), prints=("deleted",), settles=True),
        ),
    ),
    Scene(
        "A policy changes",
        "The label is added where it is missing, and left alone where it is not.",
        (
            Act(("create", "-f", f"{POLICIES}/add-labels.yaml"), prints=("add-labels created",), settles=True),
            Act(("run", "redis", "--image", "redis"), prints=("pod/redis created",)),
            Act(("get", "pod", "redis", "--show-labels"), prints=("run=redis,team=bravo",)),
            Act(("run", "newredis", "--image", "redis", "-l", "team=alpha"), prints=("pod/newredis created",)),
            Act(("get", "pod", "newredis", "--show-labels"), prints=("team=alpha",)),
        ),
    ),
    Scene(
        "Kubernetes' own policy, two bindings",
        "At most 3 replicas where the namespace is labelled environment=test, 100 elsewhere.",
        (
            Act(("create", "-f", f"{MANIFESTS}/replica-limit.yaml"), prints=("created",)),
            Act(("create", "-f", f"{MANIFESTS}/replica-limit-policy.yaml"), prints=("created",)),
            Act(
                ("create", "-n", "testing", "-f", f"{MANIFESTS}/five-replicas.yaml"),
                succeeds=False,
                prints=(
                    "ValidatingAdmissionPolicy 'replicalimit-policy.example.com' with binding "
                    "'replicalimit-binding-test.example.com' denied request: "
                    "failed expression: object.spec.replicas <= params.maxReplicas",
                ),
            ),
            Act(("create", "-n", "production", "-f", f"{MANIFESTS}/five-replicas.yaml"), prints=("five created",)),
        ),
    ),
    Scene(
        "A secret for every new namespace",
        "The namespace gets its copy of the pull secret, and the copy follows an edit of its source.",
        (
            Act(("create", "-f", f"{MANIFESTS}/regcred.yaml"), prints=("secret/regcred created",)),
            Act(("create", "-f", f"{POLICIES}/sync-secrets.yaml"), prints=("sync-secrets created",), settles=True),
            Act(("create", "-f", f"{MANIFESTS}/mytestns.yaml"), prints=("namespace/mytestns created",)),
            Act(("get", "secret", "regcred", "-n", "mytestns", "-o", "yaml"), prints=(_ONE,), waits=True),
            Act(("replace", "-f", f"{MANIFESTS}/regcred-changed.yaml"), prints=("secret/regcred replaced",)),
            Act(("get", "secret", "regcred", "-n", "mytestns", "-o", "yaml"), prints=(_TWO,), waits=True),
        ),
    ),
    Scene(
        "Defaults for every new namespace",
        "A NetworkPolicy denies all traffic, and a RoleBinding makes the owner of the namespace its admin.",
        (
            Act(
                ("create", "-f", f"{POLICIES}/namespace-defaults.yaml"),
                prints=("namespace-defaults created",),
                settles=True,
            ),
            Act(("create", "-f", f"{MANIFESTS}/team.yaml"), prints=("namespace/team created",)),
            Act(("get", "networkpolicy", "default-deny", "-n", "team", "-o", "yaml"), prints=("- Egress",), waits=True),
            Act(("get", "rolebinding", "owner-admin", "-n", "team", "-o", "yaml"), prints=("name: ann",), waits=True),
        ),
    ),
    Scene(
        "Argo CD learns of a new cluster",
        "The Cluster comes first, its kubeconfig later; then the policy makes the Secret that Argo CD looks for.",
        (
            Act(("create", "-f", f"{MANIFESTS}/fleet.yaml"), prints=("namespace/fleet created",), settles=True),
            Act(("create", "-f", f"{POLICIES}/argo-clusters.yaml"), prints=("argo-clusters created",), settles=True),
            Act(("create", "-f", f"{MANIFESTS}/prod.yaml"), prints=("cluster.cluster.x-k8s.io/prod created",)),
            Act(("create", "-f", f"{MANIFESTS}/prod-kubeconfig.yaml"), prints=("secret/prod-kubeconfig created",)),
            Act(("get", "secret", "cluster-prod", "-n", "argocd", "-o", "yaml"), prints=(_SERVER,), waits=True),
        ),
    ),
    Scene(
        "A restart when the configuration changes",
        "The policy changes an existing Deployment; its ConfigMap triggers that.",
        (
            Act(("create", "-f", f"{MANIFESTS}/web.yaml"), prints=("deployment.apps/web created",)),
            Act(("create", "-f", f"{POLICIES}/restart.yaml"), prints=("restart created",), settles=True),
            Act(("replace", "-f", f"{MANIFESTS}/web-settings.yaml"), prints=("configmap/web-settings replaced",)),
            Act(("get", "deployment", "web", "-o", "yaml"), prints=(_DIGEST,), waits=True),
        ),
    ),
    Scene(
        "What is temporary goes",
        "One object has a time to live; the other one is deleted on the schedule of a policy.",
        (
            Act(
                ("create", "-f", f"{MANIFESTS}/expiring.yaml"), prints=("one-time-token created", "build-cache created")
            ),
            Act(("get", "configmap", "one-time-token"), succeeds=False, prints=("not found",), waits=True),
            Act(("get", "configmap", "build-cache"), prints=("build-cache",)),
            Act(("create", "-f", f"{POLICIES}/temporary.yaml"), prints=("temporary created",), settles=True),
            Act(("get", "configmap", "build-cache"), succeeds=False, prints=("not found",), waits=True),
        ),
    ),
    Scene(
        "A policy for what runs already",
        "It audits: nothing is refused, and the reports below say what violates it.",
        (Act(("create", "-f", f"{POLICIES}/readiness.yaml"), prints=("readiness created",), settles=True),),
    ),
    Scene(
        "A policy of a wrong form",
        "The cluster refuses it and names the field; `pyverno apply` names file, line and column.",
        (
            Act(
                ("create", "-f", f"{MANIFESTS}/wrong-policy.yaml"),
                succeeds=False,
                prints=("spec.rules[0].validate.patern: unknown field `patern`: did you mean `pattern`?",),
            ),
        ),
    ),
)


def play(heading: Callable[[str], None]) -> list[str]:
    """Start the cluster, play all scenes and stop it; return what was not as expected."""
    return asyncio.run(_play(heading))


async def _play(heading: Callable[[str], None]) -> list[str]:
    from kubesandbox.sandbox import Sandbox
    from pyverno.telemetry.observer import Observers
    from pyverno.testing import CONTROLLERS, PolicySandbox

    heading("A cluster with policies at work")
    began = time.perf_counter()
    async with PolicySandbox(Sandbox(), Observers(), further=CONTROLLERS) as cluster:
        print(f"API server and controllers are ready after {time.perf_counter() - began:.1f} s.")
        person = shutil.which("kubectl") or ""
        print("The commands are run by kubectl." if person else "There is no kubectl: a stand-in speaks for it.")
        wrong: list[str] = []
        for scene in SCENES:
            heading(scene.title)
            print(f"{scene.why}\n")
            for act in scene.acts:
                wrong += await _perform(act, person, cluster.sandbox.kubeconfig)
                if act.settles:
                    await cluster.settle()
        await cluster.settle()
        return wrong + await _show_reports(heading, cluster.sandbox.kubeconfig)


async def _show_reports(heading: Callable[[str], None], kubeconfig: str) -> list[str]:
    """Print the reports of the cluster, write them as a page, and read them from the server of the pages."""
    from pyverno.cli.ui.run import UiOptions, serving

    heading("What is wrong in the cluster now")
    print("Every object was scanned, also what was there before its policy.\n")
    async with serving(UiOptions(kubeconfig=str(kubeconfig), cluster_name="demo", port=0)) as url:
        counts = await _counts(url)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    table = await asyncio.to_thread(_pyverno, kubeconfig, "report")
    page = await asyncio.to_thread(_pyverno, kubeconfig, "report", "-o", "html", "--output", str(REPORT))
    print(f"$ pyverno report\n{table.stdout}{table.stderr}")
    print(f"The same as one page to keep: {REPORT.relative_to(ROOT)}\n")
    wrong = [f"`pyverno report` ends with {done.returncode}" for done in (table, page) if done.returncode]
    wrong += [] if "readiness probe" in table.stdout else ["the reports do not show the violation"]
    wrong += [] if REPORT.is_file() and "<html" in REPORT.read_text(encoding="utf-8") else ["there is no page"]
    shown = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    print(f"`pyverno ui` showed them at {url} while this ran: {shown}.")
    print("To look around: pyverno sandbox --with-controllers --with-ui")
    return wrong + ([] if counts.get("fail") else ["the pages show no violation"])


async def _counts(url: str) -> Mapping[str, int]:
    import aiohttp

    end = time.monotonic() + _WAIT_SECONDS
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{url}api/v1/summary") as response:
                counts: Mapping[str, int] = (await response.json())["summary"]
            if counts.get("fail") or time.monotonic() >= end:
                return counts
            await asyncio.sleep(0.2)


def _pyverno(kubeconfig: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pyverno", *words, "--kubeconfig", str(kubeconfig)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


async def _perform(act: Act, person: str, kubeconfig: str) -> list[str]:
    shown = f"kubectl {shlex.join(act.arguments)}"
    print(f"$ {shown}", flush=True)
    end = time.monotonic() + (_WAIT_SECONDS if act.waits else 0.0)
    while True:
        code, output = await asyncio.to_thread(_run, act.arguments, person, kubeconfig)
        if all(text in output for text in act.prints) or time.monotonic() >= end:
            break
        await asyncio.sleep(0.2)
    print(output.strip("\n") + "\n")
    wrong = [f"`{shown}` does not print `{text}`" for text in act.prints if text not in output]
    if act.succeeds != (code == 0):
        wrong.append(f"`{shown}` ends with {code}")
    return wrong


def _run(arguments: tuple[str, ...], person: str, kubeconfig: str) -> tuple[int, str]:
    if not person:
        return stand_in(arguments, kubeconfig, ROOT)
    done = subprocess.run(
        [person, *arguments],
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": kubeconfig},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
