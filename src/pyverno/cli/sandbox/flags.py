"""The flags of `pyverno sandbox`."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.cli.args.flags import Flag, comma_list, number, switch, value

__all__ = ["SECTIONS"]

SECTIONS: Mapping[str, tuple[Flag, ...]] = {
    "Server": (
        number("--port", help="Port to listen on; 0 takes a free one.", default=0, least=0, most=65535),
        value(
            "--address",
            help="Address to listen on. Clients on other machines need a credential.",
            default="127.0.0.1",
            metavar="ADDRESS",
        ),
        value("--kubeconfig", help="Write the kubeconfig to this file as well.", metavar="FILE"),
        switch("--no-authz", help="Allow authenticated users everything, without RBAC."),
        switch("--log-requests", help="Write one line per request to stderr, with audit annotations."),
    ),
    "Cluster": (
        value("--kube-version", help="Kubernetes version to emulate.", default="1.35", metavar="VERSION"),
        comma_list("--load", help="Files with objects to create at the start."),
        comma_list("--seed-namespaces", help="Further namespaces to create."),
        switch("--no-kubelet", help="Leave pods pending: they are not scheduled and do not become ready."),
        switch(
            "--with-registry",
            help="Run an empty image registry over HTTP; commands find its address in REGISTRY.",
        ),
        comma_list(
            "--map-service", help="Address of a service outside of the sandbox, for webhooks: NAMESPACE/NAME=HOST:PORT."
        ),
    ),
    "Policies": (
        switch(
            "--with-controllers",
            help="Install the CustomResourceDefinitions of policies and run the controllers.",
        ),
        switch("--with-ui", help="With --with-controllers: show reports and a playground in a browser."),
        number("--ui-port", help="Port of the pages; 0 takes a free one.", default=0, least=0, most=65535),
        switch("--enablePolicyException", help="With --with-controllers: use PolicyExceptions."),
        value(
            "--exceptionNamespace",
            help="With --with-controllers: the only namespace of PolicyExceptions; `*` for any.",
            metavar="NAME",
        ),
    ),
    "Process": (
        value("--data-dir", help="Keep objects and keys in this folder between runs.", metavar="FOLDER"),
        switch("--exec", help="Run the command after the flags with KUBECONFIG set, then stop with its exit code."),
    ),
}
"""All flags, in the order of the help."""
