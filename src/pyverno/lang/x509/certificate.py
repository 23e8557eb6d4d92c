"""A certificate or certificate request as an object with Go's field names.

It shows the content of a certificate; this module must never decide whether a certificate is trusted.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtensionOID

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.x509.der import INTEGER, SEQUENCE, Element, elements, oid
from pyverno.lazyregex import regex

__all__ = ["MAX_PEM", "decode"]

MAX_PEM: Final = 262_144
"""Longest text that a policy may have decoded, in bytes."""

_MARK: Final = regex(r"-----(BEGIN|END) ([^-]*)-----")
_EXACT: Final = 2**53

_NAME_FIELDS: Final = {
    "2.5.4.6": "Country",
    "2.5.4.10": "Organization",
    "2.5.4.11": "OrganizationalUnit",
    "2.5.4.7": "Locality",
    "2.5.4.8": "Province",
    "2.5.4.9": "StreetAddress",
    "2.5.4.17": "PostalCode",
}
_SIGNATURES: Final = {
    "1.2.840.113549.1.1.2": 1,
    "1.2.840.113549.1.1.4": 2,
    "1.2.840.113549.1.1.5": 3,
    "1.3.14.3.2.29": 3,
    "1.2.840.113549.1.1.11": 4,
    "1.2.840.113549.1.1.12": 5,
    "1.2.840.113549.1.1.13": 6,
    "1.2.840.10040.4.3": 7,
    "2.16.840.1.101.3.4.3.2": 8,
    "1.2.840.10045.4.1": 9,
    "1.2.840.10045.4.3.2": 10,
    "1.2.840.10045.4.3.3": 11,
    "1.2.840.10045.4.3.4": 12,
    "1.3.101.112": 16,
}
_PSS: Final = {"sha256": 13, "sha384": 14, "sha512": 15}
_KEY_USAGES: Final = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
)
_EXTENDED_USAGES: Final = {
    "2.5.29.37.0": 0,
    "1.3.6.1.5.5.7.3.1": 1,
    "1.3.6.1.5.5.7.3.2": 2,
    "1.3.6.1.5.5.7.3.3": 3,
    "1.3.6.1.5.5.7.3.4": 4,
    "1.3.6.1.5.5.7.3.5": 5,
    "1.3.6.1.5.5.7.3.6": 6,
    "1.3.6.1.5.5.7.3.7": 7,
    "1.3.6.1.5.5.7.3.8": 8,
    "1.3.6.1.5.5.7.3.9": 9,
    "1.3.6.1.4.1.311.10.3.3": 10,
    "2.16.840.1.113730.4.1": 11,
    "1.3.6.1.4.1.311.2.1.22": 12,
    "1.3.6.1.4.1.311.61.1.1": 13,
}
_NULL_FIELDS: Final = (
    *("ExtraExtensions", "UnhandledCriticalExtensions", "ExtKeyUsage", "UnknownExtKeyUsage", "SubjectKeyId"),
    *("AuthorityKeyId", "OCSPServer", "IssuingCertificateURL", "DNSNames", "EmailAddresses", "IPAddresses", "URIs"),
    *("PermittedDNSDomains", "ExcludedDNSDomains", "PermittedIPRanges", "ExcludedIPRanges"),
    *("PermittedEmailAddresses", "ExcludedEmailAddresses", "PermittedURIDomains", "ExcludedURIDomains"),
    *("CRLDistributionPoints", "PolicyIdentifiers", "Policies", "PolicyMappings"),
)
_ZERO_FIELDS: Final = ("KeyUsage", "MaxPathLen", "InhibitAnyPolicy", "InhibitPolicyMapping", "RequireExplicitPolicy")
_FALSE_FIELDS: Final = (
    *("BasicConstraintsValid", "IsCA", "MaxPathLenZero", "PermittedDNSDomainsCritical"),
    *("InhibitAnyPolicyZero", "InhibitPolicyMappingZero", "RequireExplicitPolicyZero"),
)


def decode(pem: str) -> JSONObject:
    """Return the first PEM block as an object; raises EvaluationError when it is no certificate or request."""
    kind, der = _first_block(pem)
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise EvaluationError("PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST")
    try:
        return decoder(der)
    except StopIteration:
        raise EvaluationError("x509: malformed certificate") from None
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.InvalidVersion) as error:
        detailed = f"x509: {str(error).rstrip('.')}"
        raise EvaluationError("x509: the certificate cannot be read", detailed=detailed) from None


def _first_block(pem: str) -> tuple[str, bytes]:
    """Return label and content of the first readable block, in one pass over the lines."""
    label, body = "", []
    for line in pem.split("\n"):
        mark = _MARK.fullmatch(line.rstrip())
        if mark is None:
            body.append(line)
        elif mark[1] == "BEGIN":
            label, body = mark[2], []
        elif mark[2] == label:
            content = _block_content(body)
            if content is not None:
                return label, content
            label = ""
    raise EvaluationError("failed to decode PEM block")


def _block_content(lines: list[str]) -> bytes | None:
    """Decode the lines of a block, without its headers; None when they are not base64."""
    texts = [line.strip() for line in lines]
    if texts and ":" in texts[0] and "" in texts:
        texts = texts[texts.index("") :]
    try:
        return base64.b64decode("".join(texts), validate=True)
    except ValueError:
        return None


def _certificate(der: bytes) -> JSONObject:
    signed = next(elements(next(elements(der)).content))
    body = list(elements(signed.content))
    number = next(item for item in body if item.tag == INTEGER)
    serial = int.from_bytes(number.content, signed=True)
    certificate = x509.load_der_x509_certificate(der if serial > 0 else _with_positive_serial(der, number))
    extensions = next((item.content for item in body if item.tag == 0xA3), b"")
    # the version is optional; behind it are serial, algorithm, issuer, validity, subject, key
    issuer, _, subject, key = [item for item in body if item.tag == SEQUENCE][1:5]
    fields: JSONObject = {
        **dict.fromkeys(_NULL_FIELDS),
        **dict.fromkeys(_ZERO_FIELDS, 0),
        **dict.fromkeys(_FALSE_FIELDS, False),
        "Raw": _base64(der),
        "RawTBSCertificate": _base64(signed.raw),
        "RawSubjectPublicKeyInfo": _base64(key.raw),
        "RawSubject": _base64(subject.raw),
        "RawIssuer": _base64(issuer.raw),
        "Signature": _base64(certificate.signature),
        "SignatureAlgorithm": _signature_algorithm(certificate),
        **_public_key(certificate),
        "Version": certificate.version.value + 1,
        "SerialNumber": serial if abs(serial) < _EXACT else float(serial),
        "Issuer": _name(certificate.issuer),
        "Subject": _name(certificate.subject),
        "NotBefore": f"{certificate.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}",
        "NotAfter": f"{certificate.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}",
        "Extensions": _raw_extensions(extensions),
    }
    unhandled = []
    for extension in certificate.extensions:
        show = _EXTENSIONS.get(extension.oid)
        if show is not None:
            fields.update(show(extension.value))
        elif extension.critical:
            unhandled.append(_numbers(extension.oid))
        if extension.oid == ExtensionOID.NAME_CONSTRAINTS:
            fields["PermittedDNSDomainsCritical"] = extension.critical
    fields["UnhandledCriticalExtensions"] = unhandled or None
    return fields


def _with_positive_serial(der: bytes, number: Element) -> bytes:
    """Return a copy whose serial number the library accepts: Go reads certificates with 0 or less as well."""
    start = der.index(number.raw)
    end = start + len(number.raw)
    return der[: end - len(number.content)] + b"\x01" * len(number.content) + der[end:]


def _request(der: bytes) -> JSONObject:
    request = x509.load_der_x509_csr(der)
    _, subject, key, *rest = elements(next(elements(request.tbs_certrequest_bytes)).content)
    fields: JSONObject = {
        "Raw": _base64(der),
        "RawTBSCertificateRequest": _base64(request.tbs_certrequest_bytes),
        "RawSubjectPublicKeyInfo": _base64(key.raw),
        "RawSubject": _base64(subject.raw),
        "Version": 0,
        "Signature": _base64(request.signature),
        "SignatureAlgorithm": _signature_algorithm(request),
        **_public_key(request),
        "Subject": _name(request.subject),
        "Attributes": _attributes(rest[0].content) if rest else None,
        "Extensions": None,
        "ExtraExtensions": None,
        **dict.fromkeys(("DNSNames", "EmailAddresses", "IPAddresses", "URIs")),
    }
    for attribute in elements(rest[0].content) if rest else ():
        kind, values = elements(attribute.content)
        if oid(kind.content) == _EXTENSION_REQUEST:
            fields["Extensions"] = _raw_extensions(values.content)
    for extension in request.extensions:
        if extension.oid == ExtensionOID.SUBJECT_ALTERNATIVE_NAME:
            fields.update(_alternative_names(extension.value))
    return fields


_DECODERS: Final[dict[str, Callable[[bytes], JSONObject]]] = {
    "CERTIFICATE": _certificate,
    "CERTIFICATE REQUEST": _request,
}
_EXTENSION_REQUEST: Final = [1, 2, 840, 113549, 1, 9, 14]


# --- parts ----------------------------------------------------------------------------------------------------------


def _public_key(holder: x509.Certificate | x509.CertificateSigningRequest) -> JSONObject:
    try:
        key = holder.public_key()
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPublicKey):
        raise EvaluationError("certificate should use rsa algorithm")
    numbers = key.public_numbers()
    return {"PublicKeyAlgorithm": 1, "PublicKey": {"N": str(numbers.n), "E": numbers.e}}


def _signature_algorithm(holder: x509.Certificate | x509.CertificateSigningRequest) -> int:
    identifier = holder.signature_algorithm_oid.dotted_string
    if identifier == "1.2.840.113549.1.1.10":
        algorithm = holder.signature_hash_algorithm
        return _PSS.get(algorithm.name, 0) if algorithm else 0
    return _SIGNATURES.get(identifier, 0)


def _name(name: x509.Name) -> JSONObject:
    fields: JSONObject = {**dict.fromkeys(_NAME_FIELDS.values()), "SerialNumber": "", "CommonName": ""}
    names = []
    for attribute in name:
        value = attribute.value if isinstance(attribute.value, str) else _base64(attribute.value)
        identifier = attribute.oid.dotted_string
        names.append({"Type": _numbers(attribute.oid), "Value": value})
        if identifier in _NAME_FIELDS:
            field = _NAME_FIELDS[identifier]
            fields[field] = [*(fields[field] or ()), value]
        elif identifier == "2.5.4.3":
            fields["CommonName"] = value
        elif identifier == "2.5.4.5":
            fields["SerialNumber"] = value
    return fields | {"Names": names or None, "ExtraNames": None}


def _raw_extensions(data: bytes) -> JSON:
    """Return the extensions of a DER list with their values undecoded."""
    shown = []
    for extension in elements(next(elements(data)).content) if data else ():
        kind, *critical, value = elements(extension.content)
        is_critical = bool(critical) and critical[0].content != b"\x00"
        shown.append({"Id": oid(kind.content), "Critical": is_critical, "Value": _base64(value.content)})
    return shown or None


def _attributes(data: bytes) -> JSON:
    """Show the attributes of a request whose values are lists of pairs; others are left out, as upstream."""
    shown = []
    for attribute in elements(data):
        kind, values = elements(attribute.content)
        try:
            pairs = [[_pair(pair.content) for pair in elements(value.content)] for value in elements(values.content)]
        except (ValueError, StopIteration):
            continue
        shown.append({"Type": oid(kind.content), "Value": pairs})
    return shown or None


def _pair(data: bytes) -> JSONObject:
    kind, value, *_ = elements(data)
    if kind.tag != 0x06:
        raise ValueError("not an attribute")
    shown: JSON = _base64(value.content)
    if value.tag == 0x01:
        shown = value.content != b"\x00"
    return {"Type": oid(kind.content), "Value": shown}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _numbers(identifier: x509.ObjectIdentifier) -> list[int]:
    return [int(number) for number in identifier.dotted_string.split(".")]


# --- extensions -----------------------------------------------------------------------------------------------------


def _key_usage(value: Any) -> JSONObject:
    bits = sum(1 << bit for bit, name in enumerate(_KEY_USAGES) if getattr(value, name))
    if value.key_agreement:
        bits |= 128 * value.encipher_only | 256 * value.decipher_only
    return {"KeyUsage": bits}


def _basic_constraints(value: Any) -> JSONObject:
    length = -1 if value.path_length is None else value.path_length
    return {
        "BasicConstraintsValid": True,
        "IsCA": value.ca,
        "MaxPathLen": length,
        "MaxPathLenZero": length == 0,
    }


def _alternative_names(value: Any) -> JSONObject:
    return {
        "DNSNames": value.get_values_for_type(x509.DNSName) or None,
        "EmailAddresses": value.get_values_for_type(x509.RFC822Name) or None,
        "IPAddresses": [str(address) for address in value.get_values_for_type(x509.IPAddress)] or None,
        "URIs": [_url(url) for url in value.get_values_for_type(x509.UniformResourceIdentifier)] or None,
    }


def _url(text: str) -> JSONObject:
    """Show a URL with the fields of Go's url.URL."""
    parts = urlsplit(text)
    path, fragment = unquote(parts.path), unquote(parts.fragment)
    is_opaque = bool(parts.scheme) and not parts.netloc and not parts.path.startswith("/")
    return {
        "Scheme": parts.scheme,
        "Opaque": parts.path if is_opaque else "",
        "User": {} if "@" in parts.netloc else None,
        "Host": parts.netloc.rpartition("@")[2],
        "Path": "" if is_opaque else path,
        "RawPath": "",
        "OmitHost": False,
        "ForceQuery": text.endswith("?"),
        "RawQuery": parts.query,
        "Fragment": fragment,
        "RawFragment": "",
    }


def _extended_key_usage(value: Any) -> JSONObject:
    known = [_EXTENDED_USAGES[usage.dotted_string] for usage in value if usage.dotted_string in _EXTENDED_USAGES]
    unknown = [_numbers(usage) for usage in value if usage.dotted_string not in _EXTENDED_USAGES]
    return {"ExtKeyUsage": known or None, "UnknownExtKeyUsage": unknown or None}


def _name_constraints(value: Any) -> JSONObject:
    fields: JSONObject = {}
    for prefix, names in (("Permitted", value.permitted_subtrees), ("Excluded", value.excluded_subtrees)):
        for kind, suffix in (
            (x509.DNSName, "DNSDomains"),
            (x509.RFC822Name, "EmailAddresses"),
            (x509.UniformResourceIdentifier, "URIDomains"),
        ):
            fields[prefix + suffix] = [name.value for name in names or () if isinstance(name, kind)] or None
        networks = [name.value for name in names or () if hasattr(name.value, "netmask")]
        fields[prefix + "IPRanges"] = [
            {"IP": str(network.network_address), "Mask": _base64(network.netmask.packed)} for network in networks
        ] or None
    return fields


def _distribution_points(value: Any) -> JSONObject:
    urls = [
        name.value
        for point in value
        for name in point.full_name or ()
        if isinstance(name, x509.UniformResourceIdentifier)
    ]
    return {"CRLDistributionPoints": urls or None}


def _information_access(value: Any) -> JSONObject:
    def urls(method: x509.ObjectIdentifier) -> list[str] | None:
        found = [
            access.access_location.value
            for access in value
            if access.access_method == method and isinstance(access.access_location, x509.UniformResourceIdentifier)
        ]
        return found or None

    return {
        "OCSPServer": urls(AuthorityInformationAccessOID.OCSP),
        "IssuingCertificateURL": urls(AuthorityInformationAccessOID.CA_ISSUERS),
    }


def _policies(value: Any) -> JSONObject:
    identifiers = [policy.policy_identifier for policy in value]
    return {
        "PolicyIdentifiers": list(map(_numbers, identifiers)) or None,
        "Policies": [identifier.dotted_string for identifier in identifiers] or None,
    }


def _policy_constraints(value: Any) -> JSONObject:
    explicit, mapping = value.require_explicit_policy, value.inhibit_policy_mapping
    return {
        "RequireExplicitPolicy": explicit or 0,
        "RequireExplicitPolicyZero": explicit == 0,
        "InhibitPolicyMapping": mapping or 0,
        "InhibitPolicyMappingZero": mapping == 0,
    }


_EXTENSIONS: Final[dict[x509.ObjectIdentifier, Callable[[Any], JSONObject]]] = {
    ExtensionOID.KEY_USAGE: _key_usage,
    ExtensionOID.BASIC_CONSTRAINTS: _basic_constraints,
    ExtensionOID.SUBJECT_ALTERNATIVE_NAME: _alternative_names,
    ExtensionOID.NAME_CONSTRAINTS: _name_constraints,
    ExtensionOID.CRL_DISTRIBUTION_POINTS: _distribution_points,
    ExtensionOID.AUTHORITY_KEY_IDENTIFIER: lambda value: {
        "AuthorityKeyId": _base64(value.key_identifier) if value.key_identifier else None
    },
    ExtensionOID.SUBJECT_KEY_IDENTIFIER: lambda value: {"SubjectKeyId": _base64(value.digest)},
    ExtensionOID.EXTENDED_KEY_USAGE: _extended_key_usage,
    ExtensionOID.AUTHORITY_INFORMATION_ACCESS: _information_access,
    ExtensionOID.CERTIFICATE_POLICIES: _policies,
    ExtensionOID.POLICY_CONSTRAINTS: _policy_constraints,
    ExtensionOID.INHIBIT_ANY_POLICY: lambda value: {
        "InhibitAnyPolicy": value.skip_certs,
        "InhibitAnyPolicyZero": value.skip_certs == 0,
    },
}
