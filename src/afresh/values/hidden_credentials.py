"""Hides passwords and other credentials that stand in addresses, before anything is shown or logged."""

from __future__ import annotations

import re

DOTS = "•••"
_PARAMETERS = (
    r"[\w.~%-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|subscription[_-]?key"
    r"|private[_-]?key|signature|credential|session[_-]?id)[\w.~%-]*"
    r"|key|sig|sign|auth|authorization|pwd|pass|jwt"
)
_CREDENTIALS = re.compile(
    r"(?P<user>//[^/\s:@]*:)[^/\s]*(?=@)"  # //user:password@host
    rf"|(?P<parameter>[?&;#](?:{_PARAMETERS})=)[^&#\s'\"<>]*[^&#\s'\"<>,.:;)\]]"
    r"|(?P<setting>(?:password|pwd|secret)=)(?:'[^']*'|[^&;\s]+)",  # as in host=db password=…
    re.IGNORECASE,
)


def hide_credentials(text: str) -> str:
    """Return a text in which the passwords of addresses are replaced by dots, and the values of parameters
    whose names say that they are credentials. The text may be an address or contain some.

    >>> hide_credentials("postgresql://me:secret@db/x?sslpassword=two&sslmode=require")
    'postgresql://me:•••@db/x?sslpassword=•••&sslmode=require'
    >>> hide_credentials("https://a.test/?page=2&api_key=abc: answered 404; host=db password='a b' user=me")
    'https://a.test/?page=2&api_key=•••: answered 404; host=db password=••• user=me'
    >>> hide_credentials("https://a.test/?monkey=1&X-Amz-Signature=abc"), hide_credentials("where key=5")
    ('https://a.test/?monkey=1&X-Amz-Signature=•••', 'where key=5')
    """
    return _CREDENTIALS.sub(
        lambda found: f"{found['user'] or found['parameter'] or found['setting']}{DOTS}", text
    )
