"""The operations of an API server, through which every client writes.

Order of a write: decode, default, managed fields, mutating admission, what the server fills in, validation, validating
admission, store. A write that lost a race is tried again on the new state where the client did not insist on an old
one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeAlias

from kubesandbox.admission.chain import Admission
from kubesandbox.attributes import Attributes, Notes
from kubesandbox.objects import identity
from kubesandbox.objects.deletion import check_preconditions, deleted, gone, is_finished
from kubesandbox.objects.managers import Managers
from kubesandbox.objects.metadata import (
    generated_name,
    is_same,
    is_same_but_metadata,
    metadata_errors,
    metadata_of,
    metadata_update_errors,
    timestamp,
    with_metadata,
)
from kubesandbox.objects.patching import Patch, bad_patch_result, not_converted, undeclared
from kubesandbox.objects.subresources import is_partial, only_allowed
from kubesandbox.parsing.bodies import Body
from kubesandbox.parsing.requests import DeleteOptions, ListOptions
from kubesandbox.reads import Reads
from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.storage import listing
from kubesandbox.storage.store import Key, Store, Stored
from kubesandbox.types.converter import Converter
from kubesandbox.types.definitions import CRDS
from kubesandbox.types.resources import ResourceType
from kubesandbox.types.strategies import CREATED_BY_UPDATE, UPDATED_BY_VERSION, has_generation
from kubesandbox.view import StoreView
from kubesandbox.writes import Outcome, Write
from pyverno.engine.request import Operation
from pyverno.kube.apply.schematree import schema_tree_for
from pyverno.kube.apply.serverside import check_applied
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject
from pyverno.kube.schemas import schema_set
from pyverno.kube.status import FieldError, StatusError, bad_request, conflict, internal_error, invalid, not_found

__all__ = ["ApiServer", "Make"]

Make: TypeAlias = Callable[[JSONObject], Awaitable[tuple[JSONObject, bool]]]
"""Makes the next state of the present one, and returns whether it must be that very state."""

_NO_OPTIONS = DeleteOptions()
_TRIES = 20
_NAME_TRIES = 8
_PINNED = frozenset({"namespaces", CRDS})
"""Resources whose deletion reaches webhooks with the uid of the object that is meant."""


class ApiServer(Reads):
    """Objects of all types, and the operations on them."""

    def __init__(
        self,
        *,
        kube_version: str,
        store: Store,
        schemas: ObjectSchemas,
        admission: Callable[[StoreView], Admission],
        managers: Callable[[ApiServer], Managers],
        clock: Callable[[], datetime],
        new_uid: Callable[[], str],
        choose: Callable[[str], str],
    ) -> None:
        """Take the parts of the server; `clock` returns the time (UTC), `choose` a random letter of a text.

        Definitions of custom resources that the store holds are served from the start.
        """
        super().__init__(kube_version, store, schemas)
        self.view = StoreView(store, lambda: self.table, self.in_version)
        self.admission = admission(self.view)
        self._converter = Converter(self.definition_of, lambda: self.schemas, self.admission.caller, new_uid)
        self._managers = managers(self)
        self._new_uid = new_uid
        self._choose = choose
        self._builtin = schema_set(kube_version)
        self._empties: dict[ResourceType, JSONObject] = {}
        self.now = clock
        """The time of this server."""
        self.on_withdrawn: Callable[[str], None] = lambda _name: None
        """Called with the name of a definition that is gone: its objects cannot be watched any more."""
        for state in store.all(CRDS):
            # deletions that were under way when the process ended continue
            self._empty_definition(state.key.name)

    # ── create ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def create(self, write: Write, body: Body | JSONObject) -> Outcome:
        """Create an object; raises StatusError for everything that an API server refuses."""
        type = write.type
        found = self.decoded(write, body)
        if metadata_of(found).get("resourceVersion") not in (None, "") and not write.options.dry_run:
            # upstream: an internal error without a reason
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        found = self.schemas.default(type, identity.wiped(identity.placed(type, write.namespace, found)))
        found = self._managers.tracked(type, None, found, manager=write.manager, empty=self._empty(type))
        return await self._create(replace(write, name=metadata_of(found).get("name") or ""), found)

    async def _create(self, write: Write, body: JSONObject) -> Outcome:
        type, notes = write.type, write.notes
        attributes = write.attributes(Operation.CREATE, body, None)
        body = self._prepare(type, identity.placed(type, write.namespace, await self.mutated(attributes, notes)))
        write = replace(write, name=metadata_of(body)["name"])
        self._check(type, body, None)
        write.check_create()
        await self.admission.validate(attributes.with_assigned_name(write.name, body), notes)
        kept = await self._to_storage_version(type, body)
        present = self.store.get(write.key)
        if present is not None:
            raise identity.taken(type, present.body)
        if write.options.dry_run:
            return Outcome(body, 201)
        return await self._outcome(type, self._store(type, write.key, kept), 201)

    def _prepare(self, type: ResourceType, body: JSONObject) -> JSONObject:
        """Fill in the metadata that the server sets on a new object."""
        metadata = metadata_of(body)
        if not metadata.get("name"):
            base = metadata.get("generateName")
            if not base:
                why = FieldError("metadata.name", "Required value", "name or generateName is required")
                raise invalid(type.group, type.kind, "", [why])
            metadata = {**metadata, "name": self._free_name(type, metadata.get("namespace") or "", base)}
            # values that depend on the name can be filled in only now
            metadata = metadata_of(self.schemas.default(type, {**body, "metadata": metadata}))
        metadata = {
            **metadata,
            "uid": self._new_uid(),
            "creationTimestamp": timestamp(self.now()),
            **({"generation": 1} if has_generation(type.key) else {}),
        }
        return self.schemas.normalize(type, {**body, "metadata": metadata})

    def _free_name(self, type: ResourceType, namespace: str, base: str) -> str:
        for _ in range(_NAME_TRIES):
            name = generated_name(base, self._choose)
            if self.store.get(Key(type.key, namespace, name)) is None:
                break
        return name

    # ── update and patch ─────────────────────────────────────────────────────────────────────────────────────────────

    async def update(self, write: Write, body: Body | JSONObject) -> Outcome:
        """Replace an object; raises StatusError, 409 when it is not the one that the client has seen."""
        type = write.type
        found = self.decoded(write, body)
        identity.check_name(metadata_of(found).get("name"), write.name)
        if type.key in CREATED_BY_UPDATE and not write.subresource and self.store.get(write.key) is None:
            return await self.create(write, body)
        wanted = self.schemas.default(type, identity.placed(type, write.namespace, found))
        metadata = metadata_of(wanted)

        async def make(current: JSONObject) -> tuple[JSONObject, bool]:
            identity.check_uid(type, current, metadata.get("uid"))
            is_pinned = identity.check_version(type, current, metadata.get("resourceVersion") or "")
            if not is_pinned and (type.is_custom or type.key in UPDATED_BY_VERSION):
                why = FieldError("metadata.resourceVersion", "Invalid value", "must be specified for an update", "0")
                raise invalid(type.group, type.plural, write.name, [why])
            return wanted, is_pinned

        return await self.rewritten(write, make)

    async def patch(self, write: Write, patch: Patch) -> Outcome:
        """Change an object by a patch; server-side apply also creates it; raises StatusError."""
        type = write.type
        if patch.is_apply:
            return await self._apply_write(write, patch.value)
        definition = self._builtin.kinds.get((type.group, type.version, type.kind), "")

        async def make(current: JSONObject) -> tuple[JSONObject, bool]:
            after = patch.applied(current, schemas=self._builtin, definition=definition)
            identity.check_name(metadata_of(after).get("name"), write.name)
            found = self.schemas.default(type, identity.placed(type, write.namespace, self._patch(write, after)))
            version = metadata_of(found).get("resourceVersion") or ""
            is_pinned = version != metadata_of(current).get("resourceVersion")
            return found, is_pinned and identity.check_version(type, current, version)

        return await self.rewritten(write, make)

    async def _apply_write(self, write: Write, wanted: JSONObject) -> Outcome:
        type, name = write.type, write.name
        apply = partial(
            self._managers.applied,
            type,
            manager=write.options.field_manager,
            force=bool(write.options.force),
            subresource=write.subresource,
        )
        identity.check_applied(type, wanted, name)
        wanted = self._decoded_apply(write, wanted)
        if self.store.get(write.key) is None and not write.subresource and not metadata_of(wanted).get("name"):
            raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
        wanted = identity.placed(type, write.namespace, with_metadata(wanted, name=name))
        uid, version = metadata_of(wanted).get("uid"), metadata_of(wanted).get("resourceVersion") or ""
        if self.store.get(write.key) is None and not write.subresource:
            if uid:
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise conflict(type.group, type.plural, name, why)
            if version:
                raise not_found(type.group, type.plural, name)
            body = self.schemas.complete(type, apply(None, wanted))
            return await self._create(write, identity.wiped(body))

        async def make(current: JSONObject) -> tuple[JSONObject, bool]:
            identity.check_uid(type, current, uid)
            is_pinned = identity.check_version(type, current, version)
            return self.schemas.complete(type, apply(current, wanted), subresource=write.subresource), is_pinned

        return await self.rewritten(replace(write, manager=""), make)

    async def rewritten(
        self, write: Write, make: Make, *, is_admitted: bool = False, is_checked: bool = True
    ) -> Outcome:
        """Replace the present state by the result of `make`, which also returns whether it insists on that state.

        Managed fields have been seen to where the write names no manager; `is_admitted` is set where `make` asks
        admission by itself, and without `is_checked` the result is taken as it is.
        """
        type, subresource = write.type, write.subresource
        for _ in range(_TRIES):
            state = self.get(type, write.namespace, write.name)
            current = await self.in_version(type, state.body)
            wanted, is_pinned = await make(current)
            if is_partial(type, subresource):
                wanted = only_allowed(type, subresource, wanted, current)
            if write.manager:
                wanted = self._managers.tracked(type, current, wanted, manager=write.manager, subresource=subresource)
            attributes = write.attributes(Operation.UPDATE, wanted, current)
            # Kubernetes: a client that may change the object sees what the client sent, not what the server knows
            wanted = wanted if is_admitted else await self.mutated(attributes, write.notes)
            wanted = identity.placed(type, write.namespace, identity.carried(wanted, current))
            if is_checked:
                wanted = self._normalize(type, wanted, current, subresource)
                self._check(type, wanted, current, subresource)
            if not is_admitted:
                await self.admission.validate(attributes.with_object(wanted), write.notes)
            kept = await self._to_storage_version(type, wanted)
            if self.store.get(state.key) is not state:
                if is_pinned:
                    raise conflict(type.group, type.plural, write.name)
                continue
            if is_same(wanted, current):
                return Outcome(current, 200, state)
            if write.options.dry_run:
                return Outcome(wanted)
            if is_finished(type, wanted):
                return await self._outcome(type, self._remove(type, state, kept))
            return await self._outcome(type, self._store(type, state.key, kept))
        raise conflict(type.group, type.plural, write.name)

    def _normalize(self, type: ResourceType, body: JSONObject, current: JSONObject, subresource: str) -> JSONObject:
        if is_partial(type, subresource):
            body = only_allowed(type, subresource, body, current)
        else:
            body = self.schemas.normalize(type, body, current, subresource=subresource)
        if not has_generation(type.key):
            return body
        has_status = not type.is_custom or "status" in type.subresources
        if is_same_but_metadata(current, body, but=("status",) if has_status else ()):
            return body
        return with_metadata(body, generation=(metadata_of(current).get("generation") or 0) + 1)

    def _patch(self, write: Write, after: JSONObject) -> JSONObject:
        """Decode the result of a patch, with the error texts of patches."""
        try:
            return self.decoded(write, after)
        except StatusError as error:
            if error.status != 400:
                raise
            _, _, why = error.message.partition(f" cannot be handled as a {write.type.kind}: ")
            raise bad_patch_result(after, why or error.message) from None

    def _decoded_apply(self, write: Write, wanted: JSONObject) -> JSONObject:
        """Decode an applied object, all of whose fields must be known."""
        type = write.type
        if not type.is_custom:
            check_applied(wanted, schema_tree_for(self._builtin, type.gvk))
        try:
            decoded = self.schemas.decode(type, wanted, subresource=write.subresource)
        except StatusError as error:
            raise not_converted(type.gvk, wanted, error) from None
        if decoded.problems:
            raise undeclared(wanted, decoded.problems)
        # decoded objects hold the empty parts that their kind requires; no manager applied those
        return wanted

    def scale_patch(self, patch: Patch) -> Callable[[JSONObject], JSONObject]:
        """Return the result of a patch on a Scale."""
        definition = self._builtin.kinds["autoscaling", "v1", "Scale"]
        return lambda scale: patch.applied(scale, schemas=self._builtin, definition=definition)

    # ── delete ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def delete(self, write: Write, options: DeleteOptions = _NO_OPTIONS, *, is_named: bool = True) -> Outcome:
        """Delete an object, or mark it so that its finalizers can run; raises StatusError.

        `is_named` is unset for the deletion of a collection.
        """
        type = write.type
        for _ in range(_TRIES):
            state = self.get(type, write.namespace, write.name)
            current = await self.in_version(type, state.body)
            check_preconditions(type, current, options)
            shown = replace(options, uid=options.uid or metadata_of(current)["uid"]) if type.key in _PINNED else options
            attributes = replace(
                write.attributes(Operation.DELETE, None, current),
                name=write.name if is_named else "",
                options=shown.to_json(),
                dry_run=options.dry_run,
            )
            await self.admission.mutate(attributes, write.notes, redefault=lambda body: body)
            await self.admission.validate(attributes, write.notes)
            if self.store.get(state.key) is state:
                outcome = self._delete(type, state, options)
                return replace(outcome, body=await self._convert_result(type, outcome.body))
        raise conflict(type.group, type.plural, write.name)

    async def delete_collection(
        self, write: Write, selected: ListOptions, options: DeleteOptions = _NO_OPTIONS
    ) -> listing.Page:
        """Delete the selected objects and return them; objects that no longer exist are skipped."""
        page = await self.list(write.type, write.namespace, selected)
        for state in page.states:
            try:
                each = replace(write, namespace=state.key.namespace, name=state.key.name)
                await self.delete(each, options, is_named=False)
            except StatusError as error:
                if error.status != 404:
                    raise
        return replace(page, revision=self.store.revision)

    def _delete(self, type: ResourceType, state: Stored, options: DeleteOptions) -> Outcome:
        """Apply a deletion to a stored object, in its storage version."""
        outcome = deleted(type, state.body, options, self.now())
        if outcome.is_gone:
            if not options.dry_run:
                self._remove(type, state, outcome.body)
            return Outcome(gone(type, outcome.body))
        if options.dry_run or not outcome.is_new:
            return Outcome(outcome.body)
        written = self._store(type, state.key, outcome.body)
        if type.key == CRDS:
            self._empty_definition(state.key.name)
        return Outcome(written.body, 200, written)

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def decoded(self, write: Write, body: Body | JSONObject) -> JSONObject:
        """Read a body as an object of its type, with the complaints about fields that do not exist."""
        type, subresource, validation = write.type, write.subresource, write.options.validation
        value, duplicates = (body.value, body.duplicates) if isinstance(body, Body) else (body, ())
        expected = type.subresource_gvk(subresource) if subresource else type.gvk
        decoded = self.schemas.decode(
            type, identity.check_kind(type, expected, value, self.table), subresource=subresource
        )
        problems = (*duplicates, *decoded.problems)
        if problems and validation == "Strict":
            head = f'{expected.kind} in version "{expected.version}" cannot be handled as a {expected.kind}'
            raise bad_request(f"{head}: strict decoding error: {', '.join(problems)}")
        if validation == "Warn":
            for problem in problems:
                write.notes.warn(problem)
        return decoded.body

    async def mutated(self, attributes: Attributes, notes: Notes) -> JSONObject:
        """Return the object as mutating admission leaves it; raises StatusError."""
        body = await self.admission.mutate(attributes, notes, redefault=partial(self._reread, attributes))
        if body is None:
            raise internal_error("admission left no object")
        return body

    def _reread(self, attributes: Attributes, body: JSONObject) -> JSONObject:
        """Decode an object that admission has changed, and fill in defaults again."""
        type = attributes.type
        decoded = self.schemas.decode(type, body, subresource=attributes.subresource).body
        # objects of subresources' own kinds have no defaults
        return self.schemas.default(type, decoded) if attributes.kind == type.gvk else decoded

    def tracked(self, write: Write, kind: GVK, body: JSONObject, before: JSONObject | None = None) -> JSONObject:
        """Return an object of a kind that is never stored (Scale, Binding) with its managed fields."""
        type = replace(write.type, group=kind.group, version=kind.version, kind=kind.kind, subresources=(), crd="")
        manager, part = write.manager, write.subresource
        return self._managers.tracked(type, before, body, manager=manager, subresource=part, empty=self._empty(type))

    def _empty(self, type: ResourceType) -> JSONObject | None:
        """Return an empty object of a built-in type with its implicit fields; None for custom types."""
        if type.is_custom:
            return None
        found = self._empties.get(type)
        if found is None:
            head = {"apiVersion": type.api_version, "kind": type.kind, "metadata": {}}
            found = self._empties[type] = self.schemas.decode(type, head).body
        return found

    def _check(self, type: ResourceType, body: JSONObject, old: JSONObject | None, subresource: str = "") -> None:
        """Raise 422 with everything that is wrong with an object."""
        errors = metadata_errors(body)
        if old is not None:
            errors += metadata_update_errors(body, old)
        errors += self.schemas.validate(type, body, old, subresource=subresource)
        if errors:
            raise invalid(type.group, type.kind, metadata_of(body).get("name", ""), errors)

    # ── the store ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _store(self, type: ResourceType, key: Key, kept: JSONObject) -> Stored:
        state = self.store.put(key, kept)
        return self._served.accept(state, timestamp(self.now())) if type.key == CRDS else state

    def _remove(self, type: ResourceType, state: Stored, kept: JSONObject) -> Stored:
        last = self.store.remove(state.key, kept)
        if type.key == CRDS:
            self._served.withdraw(state.key.name)
            self.on_withdrawn(state.key.name)
        elif type.is_custom:
            self._empty_definition(type.crd)
        return last

    def _empty_definition(self, name: str) -> None:
        """Delete the objects of a definition that is being deleted; without objects it goes itself."""
        custom = self._served.leaving(name)
        if custom is None:
            return
        for each in self.store.all(custom.key):
            if not metadata_of(each.body).get("deletionTimestamp") and self.store.get(each.key) is each:
                self._delete(custom, each, _NO_OPTIONS)
        key = Key(CRDS, "", name)
        state = self.store.get(key)
        if state is None or self.store.all(custom.key):
            return
        body = self._served.released(state.body)
        if metadata_of(body).get("finalizers"):
            self.store.put(key, body)
        else:
            self._remove(self.table.versions_of(CRDS)[0], state, body)
