"""What is stored of a response for the next conditional request: validators and what belongs to them.

etag, last-modified   verbatim as the server sent them
accept-encoding       what was requested then; it is requested again, because ETags differ by encoding
url                   where they came from, if a redirect led there; they mean nothing at another address
moved                 where permanent redirects led; the next poll goes there directly
recipe                how the copy was normalised (see ``change_detection``)
sketch                of the copy, if near-duplicates are no changes (see ``similarity``)
"""

from __future__ import annotations

from collections.abc import Mapping

from afresh.sources.http.trust import ValidatorTrust, trusted_headers
from afresh.values.lease import Lease

MOVED = "moved"
_STORED = ("etag", "last-modified")
_LONGEST = 1024


def conditional_headers(lease: Lease, url: str, recipe: str, trust: ValidatorTrust) -> dict[str, str]:
    """Return the conditional headers for a request to ``url``; none if the validators belong elsewhere.

    ``recipe`` is the fingerprint of how content is normalised now. Without a copy there is nothing that a
    304 could confirm.
    """
    if lease.content_hash is None:
        return {}
    validators = lease.validators
    belong = validators.get("url", lease.key) == url and validators.get("recipe", "") == recipe
    return trusted_headers(validators, trust) if belong else {}


def is_conditional(headers: Mapping[str, str]) -> bool:
    """Tell whether a request with these headers may be answered by a 304.

    >>> is_conditional({"If-None-Match": "*"}), is_conditional({"Accept": "*/*"})
    (True, False)
    """
    return "If-None-Match" in headers or "If-Modified-Since" in headers


def validators_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the validators of a response, without those that could not be sent back byte for byte.

    >>> validators_of({"etag": 'W/"7"', "last-modified": "\\udcff", "server": "x"})
    {'etag': 'W/"7"'}
    """
    found = {name: headers[name] for name in _STORED if name in headers}
    return {
        name: value
        for name, value in found.items()
        if value and value.isascii() and value.isprintable() and len(value) <= _LONGEST
    }
