"""Which network addresses may be requested."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.ip_addresses import prohibition, refusal

PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.100.100.200",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "ff02::1",
    "168.63.129.16",
    "192.0.0.192",
    "fd20:ce::254",
    "::ffff:168.63.129.16",
    "fec0::1",
    "not an address",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public_are_refused_with_a_reason(address: str) -> None:
    assert refusal(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_may_be_requested(address: str) -> None:
    assert refusal(address) == ""


@given(st.ip_addresses(v=4))
@settings(deadline=None)
def test_an_ipv4_address_inside_ipv6_is_treated_like_itself(address: IPv4Address) -> None:
    for wrapped in (f"::ffff:{address}", str(IPv6Address(int(ip_address("64:ff9b::")) + int(address)))):
        assert bool(refusal(wrapped)) == bool(refusal(str(address)))


@pytest.mark.parametrize(
    "address", ["168.63.129.16", "192.0.0.192", "fd20:ce::254", "::ffff:100.100.100.200"]
)
def test_metadata_services_are_never_requested(address: str) -> None:
    assert prohibition(address) == "metadata"
