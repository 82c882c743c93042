"""Make texts from outside safe to print: keys, addresses, messages of servers, and what users wrote.

A terminal obeys control characters: it can be made to hide lines, to rename its window or to type. Characters
that change the direction of writing make a text look like another one. Both are printed as escapes. Passwords
and other credentials that stand in addresses are replaced by dots."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    "\u2028\u2029\ufeff\ufff9-\ufffb"  # line separators, and marks without a picture
    "\U000e0000-\U000e007f\ud800-\udfff]"  # tags, and halves of characters
)
_LINES = frozenset("\n\t")
DOTS = "•••"
_PARAMETERS = (
    r"[\w.~%-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|subscription[_-]?key"
    r"|private[_-]?key|signature|credential|session[_-]?id)[\w.~%-]*"
    r"|key|sig|sign|auth|authorization|pwd|pass|jwt"
)
_CREDENTIALS = re.compile(
    r"(?P<user>//[^/\s:@]*:)[^/\s]*(?=@)"  # //user:password@host
    r"|(?P<setting>(?:password|pwd|secret)=)(?:'[^']*'|[^&\s]+)"  # also as in host=db password=…
    rf"|(?P<parameter>[?&;#](?![\w.~%-]*(?:password|pwd|secret)=)(?:{_PARAMETERS})=)"
    r"[^&#\s'\"<>]*[^&#\s'\"<>,.:;)\]]",  # what ends a sentence is no part of the value
    re.IGNORECASE,
)


def printable(text: object, *, lines: bool = False) -> str:
    """Return a text in which every character that a terminal would obey is replaced by its escape. With
    ``lines``, line ends and tabs stay.

    >>> printable("\\x1b[2J"), printable("a\\u202eb"), printable("ä\\n"), printable("ä\\n", lines=True)
    ('\\\\x1b[2J', 'a\\\\u202eb', 'ä\\\\n', 'ä\\n')
    """

    def escape(found: re.Match[str]) -> str:
        char = found[0]
        if lines and char in _LINES:
            return char
        return char.encode("unicode_escape").decode()

    return _UNSAFE.sub(escape, str(text))


def printable_json(text: str) -> str:
    """Return a JSON text in which these characters are escaped as JSON does it, so that its meaning stays.

    >>> printable_json('["\\u202e\\x9b"]')
    '["\\\\u202e\\\\u009b"]'
    """

    def escape(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

    return _UNSAFE.sub(escape, text)


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
