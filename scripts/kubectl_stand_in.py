"""The few commands of kubectl that the demo uses, spoken by our own client where kubectl is not installed.

It prints what kubectl prints for them and knows nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.discovery import discover
from pyverno.errors import HostError
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml

PODS, DEPLOYMENTS = GVR("", "v1", "pods"), GVR("apps", "v1", "deployments")
SHOWN = {
    "pod": PODS,
    "deployment": DEPLOYMENTS,
    "configmap": GVR("", "v1", "configmaps"),
    "secret": GVR("", "v1", "secrets"),
    "networkpolicy": GVR("networking.k8s.io", "v1", "networkpolicies"),
    "rolebinding": GVR("rbac.authorization.k8s.io", "v1", "rolebindings"),
}


def run(arguments: Sequence[str], kubeconfig: str, folder: Path) -> tuple[int, str]:
    """Run one command; return its exit code and what it prints.

    Raises SystemExit for a command that is none of the demo's.
    """
    options = parser().parse_args(arguments)
    try:
        return 0, asyncio.run(_run(options, kubeconfig, folder))
    except StatusError as error:
        return 1, f"Error from server: {error.message}\n"
    except HostError as error:
        return 1, f"error: {error.message}\n"


def parser() -> argparse.ArgumentParser:
    """Return what reads the commands; it raises SystemExit for one that it does not know."""
    found = argparse.ArgumentParser(prog="kubectl")
    verbs = found.add_subparsers(dest="verb", required=True)
    for verb in ("create", "delete", "replace"):
        each = verbs.add_parser(verb)
        each.add_argument("words", nargs="*")
        each.add_argument("-f", dest="file", default="")
        each.add_argument("-n", dest="namespace", default="default")
        each.add_argument("--image", default="")
    pod = verbs.add_parser("run")
    pod.add_argument("name")
    pod.add_argument("--image", required=True)
    pod.add_argument("-l", "--labels", default="")
    shown = verbs.add_parser("get")
    shown.add_argument("kind", choices=sorted(SHOWN))
    shown.add_argument("name")
    shown.add_argument("-n", dest="namespace", default="default")
    shown.add_argument("-o", dest="output", default="", choices=["yaml"])
    shown.add_argument("--show-labels", action="store_true")
    return found


async def _run(options: argparse.Namespace, kubeconfig: str, folder: Path) -> str:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        match options.verb:
            case "run":
                await client.create(PODS, _pod(options.name, options.image, options.labels), "default")
                return f"pod/{options.name} created\n"
            case "get":
                found = await client.get(SHOWN[options.kind], options.name, options.namespace)
                return dump_yaml(found) if options.output else _row(found)
            case "create" if options.words[:1] == ["deployment"]:
                await client.create(DEPLOYMENTS, _deployment(options.words[1], options.image), "default")
                return f"deployment.apps/{options.words[1]} created\n"
        return await _file(client, options, folder)


async def _file(client: Client, options: argparse.Namespace, folder: Path) -> str:
    told = ""
    for document in load_documents((folder / options.file).read_bytes(), file=options.file):
        body: JSONObject = document.value
        name = body["metadata"]["name"]
        # a definition in the same run may have made this kind
        info = (await discover(client)).find(GVK(*parse_api_version(body["apiVersion"]), body["kind"]))
        if info is None:
            raise HostError(f'no matches for kind "{body["kind"]}" in version "{body["apiVersion"]}"')
        namespace = (body["metadata"].get("namespace") or options.namespace) if info.namespaced else ""
        shown = f"{info.singular}.{info.group}" if info.group else info.singular
        if options.verb == "create":
            await client.create(info.gvr, body, namespace)
            told += f"{shown}/{name} created\n"
        elif options.verb == "replace":
            await client.update(info.gvr, body, namespace)
            told += f"{shown}/{name} replaced\n"
        else:
            await client.delete(info.gvr, name, namespace)
            told += f'{shown} "{name}" deleted\n'
    return told


def _pod(name: str, image: str, labels: str) -> JSONObject:
    pairs = dict(each.split("=", 1) for each in labels.split(",")) if labels else {"run": name}
    spec = {"containers": [{"name": name, "image": image}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": pairs}, "spec": spec}


def _deployment(name: str, image: str) -> JSONObject:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": image, "image": image}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels}, "spec": spec}


def _row(pod: JSONObject) -> str:
    labels = ",".join(f"{key}={value}" for key, value in sorted((pod["metadata"].get("labels") or {}).items()))
    phase = (pod.get("status") or {}).get("phase", "")
    return f"NAME   STATUS   LABELS\n{pod['metadata']['name']}   {phase}   {labels}\n"
