"""Addresses of metadata services, in every form in which they can be written."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from pyverno.addresses import METADATA_SERVICES, leads_to_metadata


@pytest.mark.parametrize("service", sorted(map(str, METADATA_SERVICES)))
@pytest.mark.parametrize("form", ["{}", "::ffff:{}", "64:ff9b::{}", "2001:db8::{}"])
def test_a_metadata_service_is_recognized_inside_of_other_addresses(service: str, form: str) -> None:
    """A translator turns the address back into that of the service."""
    assert leads_to_metadata(ip_address(form.format(service)))


@pytest.mark.parametrize("address", ["fd00:ec2::254", "fd20:ce::254"])
def test_metadata_services_have_addresses_of_their_own_in_ipv6(address: str) -> None:
    """Those of two clouds."""
    assert leads_to_metadata(ip_address(address))


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.1.2", "93.184.216.34", "::1", "2001:db8::1"])
def test_other_addresses_are_not_of_metadata_services(address: str) -> None:
    """The host of a container is link-local, and a registry may be on this machine."""
    assert not leads_to_metadata(ip_address(address))
