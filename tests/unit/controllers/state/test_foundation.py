"""The common foundation of controllers: it starts, reads the cluster, and ends all of its tasks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.controllers.rights.reads import author_reads
from pyverno.controllers.state.foundation import Foundation
from pyverno.controllers.state.hosts import HostSettings
from pyverno.controllers.state.registries import RegistryFlags
from pyverno.controllers.state.settings import ControllerSettings
from pyverno.controllers.state.trustroot import TufRepository
from pyverno.errors import HostError, HostUnavailableError
from pyverno.images.verification.trust import TrustRoot, read_trust_root
from pyverno.kube.gvk import GVR
from pyverno.testing import install_definitions
from tests.authority.tuf import ROOT, Repository, serve

LEASES = GVR("coordination.k8s.io", "v1", "leases")


def test_it_knows_the_cluster_once_it_has_begun_and_ends_what_it_started() -> None:
    """Kinds are read before anything else; the end waits for all tasks."""

    async def run() -> tuple[bool, str, bool]:
        async with Sandbox(Settings(controllers=False)) as sandbox:
            foundation = Foundation(load_kubeconfig(sandbox.kubeconfig), ControllerSettings(qps=0), reads=author_reads)
            await install_definitions(foundation.client)
            try:
                await foundation.begin()
                foundation.follow()
                task = foundation.parts.start(asyncio.Event().wait())
                found = foundation.state.kinds.by_resource(LEASES) is not None
                problem = foundation.state.problem()
            finally:
                await foundation.end()
            return found, problem, task.cancelled()

    assert (True, "", True) == asyncio.run(run())


def test_rules_trust_the_root_of_the_repository_that_is_followed(tmp_path: Path) -> None:
    """A TUF repository in the settings is followed, and its root is what hosts return."""
    repository = Repository(tmp_path)
    repository.publish()

    async def run() -> TrustRoot:
        async with Sandbox(Settings(controllers=False)) as sandbox:
            with serve(tmp_path) as mirror:
                followed = TufRepository(mirror, repository.sign(repository.root))
                hosts = HostSettings(registries=RegistryFlags(repository=followed))
                foundation = Foundation(
                    load_kubeconfig(sandbox.kubeconfig), ControllerSettings(qps=0, hosts=hosts), reads=author_reads
                )
                try:
                    foundation.follow()
                    async with asyncio.timeout(30):
                        while True:
                            with suppress(HostUnavailableError):
                                return foundation.hosts.host().image_source.trust_root()
                            await asyncio.sleep(0.005)
                finally:
                    await foundation.end()

    assert read_trust_root(ROOT) == asyncio.run(run())


def test_a_lease_is_taken_in_the_namespace_of_the_controllers_and_under_the_name_of_the_replica() -> None:
    """The holder identity distinguishes replicas."""

    async def run() -> tuple[str, str]:
        async with Sandbox(Settings(controllers=False)) as sandbox:
            settings = ControllerSettings(namespace="default", identity="replica-7", lease_retry=0.05)
            foundation = Foundation(load_kubeconfig(sandbox.kubeconfig), settings, reads=author_reads)
            election = foundation.election("some-lease")
            leads = asyncio.Event()

            async def work() -> None:
                leads.set()
                await asyncio.Event().wait()

            leading = asyncio.create_task(election.run(work))
            try:
                await leads.wait()
                lease = await foundation.client.get(LEASES, "some-lease", "default")
            finally:
                leading.cancel()
                await asyncio.gather(leading, return_exceptions=True)
                await foundation.end()
            return lease["metadata"]["namespace"], lease["spec"]["holderIdentity"]

    assert ("default", "replica-7") == asyncio.run(run())


def test_a_cluster_that_cannot_be_reached_is_an_error_at_the_start() -> None:
    """A controller without a cluster must not appear to work."""

    async def run() -> None:
        foundation = Foundation(Access("https://127.0.0.1:1"), ControllerSettings(), reads=author_reads)
        try:
            await foundation.begin()
        finally:
            await foundation.end()

    with pytest.raises(HostError):
        asyncio.run(run())
