"""`pyverno verify`: the flags of the command."""

from __future__ import annotations

import click

from pyverno.cli.args.flags import repeated, switch, value
from pyverno.cli.args.sections import command

__all__ = ["verify"]

_HELP = """Verify the signatures or attestations of an image, and show every check.

The signers are those of --key, --certificate-identity, --notary-certificate, or of the policies of --policy that
select the image; all of them must have signed. Policies in CEL, variables and conditions are evaluated for a Pod that
runs the image in the namespace `default`. Credentials come from the configuration of docker or podman. The exit code is
1 unless everything is verified.
"""

_SECTIONS = {
    "Signers": (
        repeated(
            "--key",
            help="File with a public key (PEM), or a key's name in a KMS (awskms://...).",
            metavar="FILE",
            key="keys",
        ),
        value(
            "--certificate-identity", help="Subject of keyless signatures; `*` and `?` are wildcards.", key="subject"
        ),
        value("--certificate-oidc-issuer", help="Issuer of keyless signatures; wildcards as above.", key="issuer"),
        value(
            "--notary-certificate", help="File with the certificates that Notary signatures must lead to.", key="store"
        ),
        repeated(
            "--policy",
            help="File with ImageValidatingPolicies, or with policies that have verifyImages rules.",
            metavar="FILE",
            key="policies",
        ),
    ),
    "Trust": (
        value("--trust-root", help="File with the trusted authorities and logs (`trusted_root.json`).", metavar="FILE"),
        switch("--ignore-tlog", help="Accept signatures with a key that no transparency log holds."),
        value(
            "--attestation", help="Verify attestations of this predicate type, instead of signatures.", metavar="TYPE"
        ),
        switch("--allow-insecure-registry", help="Allow plain HTTP to the registry.", key="allows_http"),
    ),
    "Output": (
        value(
            "-o", "--output", help="Format: text or json.", default="text", choices=("text", "json"), metavar="FORMAT"
        ),
    ),
}


def _verify(image: str, **flags: object) -> None:
    from pyverno.cli.verify.run import VerifyOptions, run_verify

    given = {key: tuple(each) if isinstance(each, list) else each for key, each in flags.items()}
    run_verify(VerifyOptions(image=image, **given))  # type: ignore[arg-type]


verify = command(
    "verify",
    _HELP,
    _verify,
    _SECTIONS,
    click.Argument(["image"], metavar="IMAGE"),
    examples=(
        "pyverno verify registry.example.org/app:v1 --key cosign.pub --trust-root trusted_root.json",
        "pyverno verify registry.example.org/app:v1 --key cosign.pub --ignore-tlog -o json",
        "pyverno verify registry.example.org/app:v1 --policy policies/signed.yaml --trust-root trusted_root.json",
    ),
)
