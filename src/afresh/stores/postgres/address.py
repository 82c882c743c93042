"""The address of a PostgreSQL store: what libpq understands, and ``schema=NAME`` for its tables."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from afresh.values.errors import UsageError

_DEFAULT_SCHEMA = "afresh"
_LONGEST = 63  # bytes of a name in PostgreSQL


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """``url`` is for libpq and may hold a password; ``name`` is for people and does not."""

    url: str
    schema: str
    name: str


def parse_address(url: str) -> PostgresAddress:
    """Return the parts of an address.

    >>> address = parse_address("postgresql://me:secret@db.example.org/copies?schema=web&sslmode=require")
    >>> address.schema, address.name
    ('web', 'postgresql://me@db.example.org/copies, schema web')
    >>> address.url
    'postgresql://me:secret@db.example.org/copies?sslmode=require'
    """
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        # The message of urllib may quote the address, and with it the password.
        raise UsageError(
            "the store's address cannot be read: give postgresql://USER@HOST/DATABASE?schema=NAME"
        ) from None
    schema = dict(options).get("schema", _DEFAULT_SCHEMA)
    if not schema or "\0" in schema or len(schema.encode("utf-8", "replace")) > _LONGEST:
        raise UsageError(f"the store's schema is {schema!r}: give a name of 1 to {_LONGEST} bytes")
    kept = urlencode([(key, value) for key, value in options if key != "schema"], quote_via=quote, safe="")
    user, at, place = parts.netloc.rpartition("@")
    where = place or dict(options).get("host", "")
    name = f"{parts.scheme}://{user.partition(':')[0]}{at}{where}{parts.path}, schema {schema}"
    return PostgresAddress(urlunsplit(parts._replace(query=kept)), schema, name)
