"""What is kept of an answer for the next conditional request: validators, verbatim, and their company.

etag, last-modified   as the server wrote them
accept-encoding       what was asked for then: ETags differ by encoding, so it is asked for again
url                   where they came from, if a redirect led there: they mean nothing elsewhere
moved                 where permanent redirects led: the next poll goes there at once
recipe                how the copy was normalised (see ``content``)
sketch                of the copy, where near-duplicates are no changes (see ``similarity``)
"""

from __future__ import annotations

from collections.abc import Mapping

from afresh.sources.http.trust import ValidatorTrust, trusted_headers
from afresh.values.lease import Lease

MOVED = "moved"
_KEPT = ("etag", "last-modified")
_LONGEST = 1024


def conditional_headers(lease: Lease, url: str, recipe: str, honesty: ValidatorTrust) -> dict[str, str]:
    """The conditional headers for a request to ``url``; none where the validators are another's.

    ``recipe`` is the fingerprint of how content is normalised now. Without a copy there is nothing that a
    304 could confirm.
    """
    if lease.content_hash is None:
        return {}
    validators = lease.validators
    theirs = validators.get("url", lease.key) == url and validators.get("recipe", "") == recipe
    return trusted_headers(validators, honesty) if theirs else {}


def is_conditional(headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers may be answered by a 304.

    >>> is_conditional({"If-None-Match": "*"}), is_conditional({"Accept": "*/*"})
    (True, False)
    """
    return "If-None-Match" in headers or "If-Modified-Since" in headers


def kept(headers: Mapping[str, str]) -> dict[str, str]:
    """The validators of an answer; those that could not be sent back byte for byte are left out.

    >>> kept({"etag": 'W/"7"', "last-modified": "\\udcff", "server": "x"})
    {'etag': 'W/"7"'}
    """
    found = {name: headers[name] for name in _KEPT if name in headers}
    return {
        name: value
        for name, value in found.items()
        if value and value.isascii() and value.isprintable() and len(value) <= _LONGEST
    }
