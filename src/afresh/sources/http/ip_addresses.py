"""Decide which network addresses may be requested: public ones, and private ones if a source allows them.

A URL, a redirect or a DNS answer can contain any address. A fetcher that requests addresses of its own
network may read pages that are not public (the metadata service of a cloud at 169.254.169.254, the page of a
router). Link-local addresses and metadata services are never requested, because they reveal keys of the
computer."""

from __future__ import annotations

import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

NEVER = "never asked"
NOT_AN_ADDRESS = "not an IP address"
_NAT64 = IPv6Network("64:ff9b::/96")
_LOW_32_BITS = 0xFFFFFFFF
# Of Alibaba, Azure, Oracle, AWS and Google. Some of them are in public networks.
_METADATA = frozenset(
    map(ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"))
)
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal"})
_SHARED = IPv4Network("100.64.0.0/10")  # carrier-grade NAT, and some clouds' metadata


@lru_cache(maxsize=4096)  # called for every request, with few different hosts
def refusal(address: str) -> str:
    """Return the reason why ``address`` must not be requested; empty if it is a public address.

    >>> refusal("169.254.169.254"), refusal("::ffff:127.0.0.1"), refusal("93.184.216.34")
    ('link-local', 'loopback', '')
    """
    try:
        ip = _unwrap(ip_address(address.partition("%")[0]))
    except ValueError:
        return NOT_AN_ADDRESS
    checks = (
        (ip in _METADATA, "metadata"),
        (ip.is_loopback, "loopback"),
        (ip.is_link_local, "link-local"),
        (ip.is_unspecified, "unspecified"),
        (ip.is_multicast, "multicast"),
        (isinstance(ip, IPv4Address) and ip in _SHARED, "shared"),
        (ip.is_private or (isinstance(ip, IPv6Address) and ip.is_site_local), "private"),
        (ip.is_reserved or not ip.is_global, "reserved"),
    )
    return next((words for bad, words in checks if bad), "")


@lru_cache(maxsize=4096)
def prohibition(host: str) -> str:
    """Return why a host is never requested, even if private addresses are allowed; empty if it may be.

    >>> [prohibition(host) for host in ("::ffff:169.254.169.254", "metadata.google.internal", "10.1.2.3")]
    ['link-local', 'metadata', '']
    """
    if host.rstrip(".").lower() in _METADATA_NAMES:
        return "metadata"
    reason = refusal(host)
    return reason if reason in ("link-local", "metadata") else ""


def plain_address(host: str) -> str:
    """Return a host in the usual form of an IPv4 address, if it is another way to write one; else ``host``.

    >>> [plain_address(host) for host in ("127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", "a.test", "::1")]
    ['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.1', 'a.test', '::1']
    """
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return host


def address_problem(host: str, *, allow_private: bool) -> str:
    """Return why a host is refused before any name is resolved; empty if it is a name or an allowed address.

    >>> address_problem("127.1", allow_private=False)
    '127.1 is a loopback address'
    >>> address_problem("127.1", allow_private=True), address_problem("a.test", allow_private=False)
    ('', '')
    """
    address = plain_address(host)  # a proxy, which resolves names, understands other spellings too
    reason = prohibition(address) if allow_private else prohibition(address) or refusal(address)
    if reason and reason != NOT_AN_ADDRESS:
        return f"{host} is a {reason} address{f', {NEVER}' if prohibition(address) else ''}"
    if not allow_private and f".{host.rstrip('.')}".endswith(".localhost"):
        return f"{host} is a name of this machine"
    return ""


def with_remedy(problem: str, source: str) -> str:
    """Return the words for a refused address that the user chose, with what allows it, if anything does: an
    option, or a setting of its ``source``, whose table may not be written yet.

    >>> with_remedy("::1 is a loopback address", "web").partition(", or by ")[2]
    'allow_private = true in the [[source]] table of afresh.toml with name = "web")'
    """
    table = f'the [[source]] table of afresh.toml with name = "{source}"'
    remedy = f" (allowed by --allow-private, or by allow_private = true in {table})"
    return problem if NEVER in problem else problem + remedy


def _unwrap(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address inside an IPv6 address (mapped, 6to4, Teredo, NAT64), or ``ip`` itself."""
    if isinstance(ip, IPv4Address):
        return ip
    if ip in _NAT64:
        return IPv4Address(int(ip) & _LOW_32_BITS)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or ip
