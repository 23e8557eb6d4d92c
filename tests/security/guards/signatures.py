"""The guards of the verification of signatures (I7).

Each row: the name of the guard, its test, its module (below `images/verification` unless it begins with a room), the
text that is taken away, and what is there then.
"""

from __future__ import annotations

from typing import Final

from tests.security.guards.guard import guard

__all__ = ["SIGNATURES"]

_VERIFY, _NOTARY = "images/verification/test_verify.py", "images/verification/notary/test_verify.py"
_WRONG: Final = f"tests/unit/{_VERIFY}::test_a_wrong_signature_fails_with_its_reason"
_ENTRY: Final = f"tests/unit/{_VERIFY}::test_a_log_entry_needs_the_signature_of_the_log"
_WRONG_NOTARY: Final = f"tests/unit/{_NOTARY}::test_the_error_of_a_wrong_signature_names_the_fault"
_CERTIFICATE: Final = f"tests/unit/{_NOTARY}::test_the_error_of_a_wrong_certificate_names_the_fault"
_STAMP: Final = f"tests/unit/{_NOTARY}::test_a_demanded_time_stamp_must_be_there_and_be_of_this_signature"
_OBJECT: Final = (
    "tests/unit/engine/actions/test_verify_manifests.py::test_an_object_that_was_not_signed_like_this_fails"
)
_COUNT: Final = (
    "tests/unit/engine/imageverification/test_notary.py::test_one_of_the_attestors_is_enough_unless_all_are_demanded"
)
_MESSAGE: Final = "tests/unit/images/manifests/test_signed.py::test_a_message_that_cannot_be_read_is_an_error"
_REFERRER: Final = (
    "tests/unit/engine/imageverification/test_notary.py::test_an_attestation_is_a_referrer_that_the_signer_signed"
)
_BROKEN: Final = f"tests/unit/{_NOTARY}::test_an_envelope_that_cannot_be_read_is_an_error"

_REMEMBERED: Final = (
    "tests/unit/images/verification/test_chain.py::test_issuers_that_are_remembered_prove_no_more_than_before"
)

_ROWS: Final[tuple[tuple[str, str, str, str, str], ...]] = (
    (
        "no annotation stands for the signed name",
        _WRONG,
        "payloads.py",
        "{**(optional or {}), **named}",
        "{**named, **(optional or {})}",
    ),
    (
        "checkpoints are signed notes",
        f"tests/unit/{_VERIFY}::test_a_checkpoint_is_a_signed_note_to_the_letter",
        "merkle.py",
        "is_note = blank and not rest and signers and all(signers)",
        "is_note = True",
    ),
    (
        "a bundle has no unknown fields",
        f"tests/unit/{_VERIFY}::test_a_bundle_that_cannot_be_read_is_refused",
        "signature.py",
        "if name not in known:",
        "if False:",
    ),
    (
        "a signature is for one digest",
        _WRONG,
        "verify.py",
        "if self.expected.digest not in self.signature.payload.digests:",
        "if False:",
    ),
    ("an attestation is no signature", _WRONG, "verify.py", "if found != self.expected.predicate_type:", "if False:"),
    (
        "a signature is checked",
        _WRONG,
        "keys.py",
        "except (InvalidSignature, ValueError):",
        "except InvalidSignature:\n            pass\n        except ValueError:",
    ),
    (
        "identities are compared",
        _WRONG,
        "verify.py",
        "if not any(_is(each, issuer, subjects) for each in self.attestor.identities):",
        "if False:",
    ),
    (
        "a certificate names one issuer",
        _WRONG,
        "certificates.py",
        "if first is not None and second is not None and first != second:",
        "if False:",
    ),
    (
        "a certificate is valid when it signs",
        _WRONG,
        "chain.py",
        "if not leaf.begins <= time <= leaf.ends:",
        "if False:",
    ),
    (
        "extensions are compared",
        _WRONG,
        "verify.py",
        'raise VerificationError(f"the certificate says `{found[:_MAX_SHOWN]}` where `{demanded.text}` is demanded")',
        "pass",
    ),
    (
        "annotations are compared",
        _WRONG,
        "verify.py",
        'raise VerificationError(f"the signature says `{found[:_MAX_SHOWN]}` where `{demanded.text}` is demanded")',
        "pass",
    ),
    (
        "log entries are of trusted logs",
        _WRONG,
        "logentry.py",
        "log = next((each for each in logs if each.id == entry.log_id), None)",
        "log = next(iter(logs), None)",
    ),
    (
        "log entries are of these bytes",
        _WRONG,
        "logentry.py",
        "if hashlib.new(algorithm, about.signed).digest() != digest:",
        "if False:",
    ),
    (
        "logs sign their promises",
        _ENTRY,
        "logentry.py",
        'log.key.check(entry.promise, _promised(entry), what="the promise of the log")',
        "pass",
    ),
    (
        "proofs lead to the root",
        _ENTRY,
        "logentry.py",
        "if root != proof.root or checkpoint.root != root or checkpoint.size != proof.size:",
        "if False:",
    ),
    (
        "an entry has a proof or a promise",
        _ENTRY,
        "logentry.py",
        "if not entry.promise and entry.proof is None:",
        "if False:",
    ),
    (
        "certificates are logged",
        _WRONG,
        "transparency.py",
        'raise VerificationError(problems[0] if problems else "the certificate has no certificate timestamp")',
        "return",
    ),
    (
        "an unsettled constraint does not pass",
        f"tests/unit/{_VERIFY}::test_an_open_constraint_never_passes",
        "ledger.py",
        "all(each.state is State.MET for each in self._entries.values())",
        "all(each.state is not State.BROKEN for each in self._entries.values())",
    ),
    (
        "a broken constraint stays broken",
        f"tests/unit/{_VERIFY}::test_a_broken_constraint_stays_broken",
        "ledger.py",
        "if known.state is State.OPEN or entry.state is State.BROKEN:",
        "if True:",
    ),
    (
        "nothing demanded is no pass",
        f"tests/unit/{_VERIFY}::test_an_empty_ledger_does_not_pass",
        "ledger.py",
        "return bool(self._entries) and all(",
        "return all(",
    ),
    (
        "keys have a length",
        "tests/unit/images/verification/test_keys.py::test_a_key_has_a_length",
        "keys.py",
        "if len(data) > MAX_PEM:",
        "if False:",
    ),
    (
        "TUF: thresholds count keys",
        "tests/unit/cli/trust/test_command.py::test_one_key_under_two_ids_is_one_signer",
        "registry/tufrepository.py",
        "if len(keys) < found.threshold:",
        "if False:",
    ),
    (
        "Notary: a signature is for one digest",
        _WRONG_NOTARY,
        "notary/verify.py",
        'if found.get("digest") != self.target.digest:',
        "if False:",
    ),
    (
        "Notary: a signature is for one size",
        _WRONG_NOTARY,
        "notary/verify.py",
        "if isinstance(size, bool) or size != self.target.size:",
        "if False:",
    ),
    (
        "Notary: a signature is for one media type",
        _WRONG_NOTARY,
        "notary/verify.py",
        'if self.target.media_type and found.get("mediaType") != self.target.media_type:',
        "if False:",
    ),
    (
        "Notary: payloads have a type",
        _WRONG_NOTARY,
        "notary/verify.py",
        "if self.signature.content_type != _PAYLOAD:",
        "if False:",
    ),
    (
        "Notary: one scheme is trusted",
        _WRONG_NOTARY,
        "notary/verify.py",
        "if self.signature.scheme != _X509:",
        "if False:",
    ),
    ("Notary: unknown critical headers", _WRONG_NOTARY, "notary/verify.py", "if listed - demanded:", "if False:"),
    ("Notary: what must be critical is", _WRONG_NOTARY, "notary/verify.py", "if demanded - listed:", "if False:"),
    (
        "Notary: one signing time",
        _WRONG_NOTARY,
        "notary/verify.py",
        "if AUTHENTIC_TIME in self.signature.headers or SIGNING_TIME not in self.signature.headers:",
        "if False:",
    ),
    ("Notary: signatures expire", _WRONG_NOTARY, "notary/verify.py", "if self.target.now > expiry:", "if False:"),
    (
        "Notary: the chain is in the trust store",
        _WRONG_NOTARY,
        "notary/verify.py",
        "if each in self.attestor.store:",
        "if True:",
    ),
    (
        "Notary: the key fixes the algorithm",
        _WRONG_NOTARY,
        "notary/algorithms.py",
        "if algorithm != allowed:",
        "if False:",
    ),
    (
        "Notary: the chain is issued link by link",
        _WRONG_NOTARY,
        "notary/chain.py",
        "each.x509.verify_directly_issued_by(issuer.x509)",
        "pass",
    ),
    (
        "Notary: issuers are authorities",
        _CERTIFICATE,
        "notary/chain.py",
        "if constraints is None or not constraints.ca:",
        "if False:",
    ),
    (
        "Notary: certificates are for signing code",
        _CERTIFICATE,
        "notary/chain.py",
        "if ExtendedKeyUsageOID.CODE_SIGNING not in extended:",
        "if False:",
    ),
    (
        "Notary: key usage is critical",
        _CERTIFICATE,
        "notary/chain.py",
        "if not usage.critical or not usage.value.digital_signature:",
        "if False:",
    ),
    (
        "Notary: certificates are valid",
        _CERTIFICATE,
        "notary/chain.py",
        "if not all(each.begins <= time <= each.ends for time in times):",
        "if False:",
    ),
    (
        "Notary: a time stamp is of this signature",
        _STAMP,
        "timestamps.py",
        "builder.build().verify_message(response, signature)",
        "pass",
    ),
    ("Notary: keys in CBOR are unique", _BROKEN, "notary/cbor.py", "if key in found:", "if False:"),
    ("Notary: nothing follows an envelope", _BROKEN, "notary/cbor.py", "if reader.position != len(data):", "if False:"),
    ("signed JSON has unique keys", _BROKEN, "strictjson.py", "if len(found) != len(pairs):", "if False:"),
    (
        "Notary: one signer counts once",
        _COUNT,
        "images/verification/counting.py",
        "        if each.passes and not each.signers & counted:",
        "        if each.passes:",
    ),
    (
        "Notary: each attestor has its own store",
        _COUNT,
        "images/verification/counting.py",
        "return self.ledger is not None and self.ledger.passes",
        "return self.ledger is not None",
    ),
    (
        "Notary: an attestation is signed itself",
        _REFERRER,
        "engine/imageverification/verifier.py",
        "            if found.passes:\n                verified.append(each)\n                best = found\n",
        "            if True:\n                verified.append(each)\n"
        "                best = SetFinding(attestors.path, attestors.count, attestors.count, (), ())\n",
    ),
    (
        "Notary: artifacts refer to the image",
        "tests/unit/registry/test_images.py::test_a_referrer_of_another_image_is_an_error",
        "registry/storedreading.py",
        'if not isinstance(subject, dict) or subject.get("digest") != digest:',
        "if False:",
    ),
    (
        "cloud identities are not for policies of a namespace",
        "tests/unit/engine/test_broker.py::test_a_policy_of_a_namespace_has_no_cloud_identity",
        "engine/broker.py",
        'if credentials.get("providers"):',
        "if False:",
    ),
    (
        "manifests: the object is the signed one",
        _OBJECT,
        "engine/actions/verify_manifests.py",
        "if not found.passes or changed:",
        "if not found.passes:",
    ),
    (
        "manifests: signers are those of the rule",
        _OBJECT,
        "engine/actions/verify_manifests.py",
        "if not found.passes or changed:",
        "if changed:",
    ),
    (
        "manifests: messages have a size",
        _MESSAGE,
        "images/manifests/signed.py",
        "if len(found) > self._left:",
        "if False:",
    ),
    (
        "manifests: what is unpacked is charged",
        "tests/unit/images/manifests/test_signed.py::test_what_is_unpacked_is_charged",
        "images/manifests/signed.py",
        "self._meter.charge_steps(len(found) // _BYTES_PER_STEP)",
        "pass",
    ),
    (
        "manifests: parts share a limit",
        "tests/unit/images/manifests/test_signed.py::test_parts_that_are_unpacked_share_a_limit",
        "images/manifests/signed.py",
        "self._left -= len(found)",
        "pass",
    ),
    (
        "manifests: one stream",
        _MESSAGE,
        "images/manifests/signed.py",
        "if not reader.eof or reader.unused_data:",
        "if False:",
    ),
    (
        "Notary: an attestor has certificates",
        "tests/unit/engine/imageverification/test_notary.py"
        "::test_an_attestor_without_certificates_is_an_error_of_an_attestation",
        "engine/imageverification/notary.py",
        "if entry.key is not None or entry.identities or entry.extensions or not certificates:",
        "if False:",
    ),
    (
        "errors name the entry of their own list",
        "tests/unit/engine/actions/test_verify_images.py::test_the_error_of_an_attestation_names_the_entry_that_failed",
        "attestorsets.py",
        'path = f"{parent}.entries[{index}]"',
        'path = f"{parent}.entries[0]"',
    ),
    (
        "the digest is that of the image's own repository",
        "tests/unit/engine/actions/test_verify_images.py"
        "::test_the_digest_is_not_that_of_the_repository_with_the_signatures",
        "engine/imageverification/verifier.py",
        "        expected = Expected(self.resolve().digest, IMAGE_SIGNATURE, self.now())\n",
        "        place = next((one.repository or self.repository) for one in _attestors_in(attestors))\n"
        '        self = replace(self, image=replace(self.image, reference=f"{place}:{self.image.tag}"))\n'
        "        expected = Expected(self.resolve().digest, IMAGE_SIGNATURE, self.now())\n",
    ),
    (
        "pull secrets of one image serve no other",
        "tests/unit/engine/actions/test_verify_images.py::test_the_pull_secret_of_one_image_serves_no_other",
        "images/extract.py",
        "image.at(steps, place.pull_secrets)",
        "image.at(steps, sum((p.pull_secrets for p in _places(resource, extractor.fields, runtime.budget, [])), ()))",
    ),
    (
        "what was read is kept by its credentials",
        "tests/unit/engine/actions/test_verify_images.py::test_the_pull_secret_of_one_image_serves_no_other",
        "engine/imageverification/verifier.py",
        'return ("image", self.image.reference, self.broker.namespace, repr(self.access))',
        'return ("image", self.image.reference, self.broker.namespace)',
    ),
    (
        "the identity goes to vaults of Azure only",
        "tests/unit/registry/providers/test_publickeys.py::test_a_name_that_is_no_key_is_an_error",
        "registry/providers/publickeys.py",
        "found = _AZURE_KEY.fullmatch(rest)",
        'found = regex("(([^/]+))/([^/]+)(?:/(.*))?").fullmatch(rest)',
    ),
    (
        "realms are addresses of servers",
        "tests/unit/registry/test_client.py::test_a_realm_that_is_no_address_gets_no_credential",
        "registry/transport.py",
        'if realm.scheme not in ("http", "https") or not realm.host or realm.user or realm.password:',
        "if False:",
    ),
    (
        "no credential crosses the network in clear text",
        "tests/unit/registry/test_client.py::test_a_registry_behind_https_cannot_fetch_tokens_over_plain_http",
        "registry/transport.py",
        'if realm.scheme != "https" and _base(call).scheme == "https":',
        "if False:",
    ),
    (
        "authorities are valid when the signer signs",
        "tests/unit/images/verification/test_chain.py::test_an_authority_between_that_has_expired_leads_nowhere",
        "chain.py",
        ".time(datetime.fromtimestamp(time, UTC))",
        ".time(max(each.x509.not_valid_before_utc for each in (leaf, *offered)))",
    ),
    (
        "issuers that are remembered may expire",
        _REMEMBERED,
        "chain.py",
        "found is not None and found.begins <= time <= found.ends else None",
        "found is not None else None",
    ),
    (
        "issuers are remembered by their roots",
        _REMEMBERED,
        "chain.py",
        "key = (tuple(roots), offered)",
        "key = ((), offered)",
    ),
    (
        "issuers that are remembered issued the signer",
        _REMEMBERED,
        "chain.py",
        "found = _verified(leaf, issuers.verifier, (), time)",
        "found = (leaf, leaf)",
    ),
    (
        "issuers that restrict names are not remembered",
        _REMEMBERED,
        "chain.py",
        "if any(extension_value(each, x509.NameConstraints) is not None for each in issuers):",
        "if False:",
    ),
    (
        "chains that are remembered may expire",
        _REMEMBERED,
        "chain.py",
        "found is not None and found.begins <= time <= found.ends else ()",
        "found is not None else ()",
    ),
    (
        "chains are remembered by their signer and roots",
        _REMEMBERED,
        "chain.py",
        "found = self._chains.get((key, leaf))",
        "found = next(iter(self._chains.values()), None)",
    ),
    (
        "few chains are remembered",
        "tests/unit/images/verification/test_chain.py::test_few_chains_are_remembered",
        "chain.py",
        "if len(self._chains) >= _MAX_CHAINS:",
        "if False:",
    ),
    (
        "few issuers are remembered",
        "tests/unit/images/verification/test_chain.py::test_few_issuers_are_remembered",
        "chain.py",
        "if len(self._found) >= _MAX_REMEMBERED:",
        "if False:",
    ),
    (
        "signed JSON holds whole characters",
        "tests/unit/images/verification/test_strictjson.py::test_half_of_a_surrogate_pair_is_no_text",
        "strictjson.py",
        'if b"\\\\ud" in data or b"\\\\uD" in data:',
        "if False:",
    ),
)
"""Name, test, module, text and replacement of each guard."""

SIGNATURES: Final = tuple(
    guard(
        "I7",
        f"signatures: {name}",
        test,
        (
            module if module.startswith(("engine/", "images/", "registry/")) else f"images/verification/{module}",
            text,
            other,
        ),
    )
    for name, test, module, text, other in _ROWS
)
