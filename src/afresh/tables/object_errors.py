"""Why an object store refused something, in words.

The clients of object stores (pyarrow, obstore) tell only in the text of an error what the server answered,
often behind its address, the time it took and the number of attempts.
"""

from __future__ import annotations

import re
from typing import Literal

from afresh.values.formatting import one_line

Refusal = Literal["no space is left", "access is denied"]

_FULL = re.compile(
    r"no space left|quota ?exceeded|insufficient ?storage|storage ?full|status(?: code:)? 507|file too large"
    r"|(?:os error|errno) (?:28|122)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"permission ?denied|access[ _]?denied|forbidden|unauthorized|invalid_?access_?key"
    r"|signature_?does_?not_?match|status(?: code:)? 40[13]|(?:os error|errno) (?:13|30)\b",
    re.IGNORECASE,
)
_ANSWERS = (
    re.compile(r"<Code>(?P<code>[^<]+)</Code>(?:\s*<Message>(?P<message>[^<]*)</Message>)?"),
    re.compile(r"Unable to parse ExceptionName:\s+(?P<code>\S+)\s+Message: (?P<message>.*)", re.DOTALL),
)


def refusal_of(error: object) -> Refusal | None:
    """Return whether there is no space left or access is denied, according to an error; None if neither.

    >>> refusal_of("status code: 507 Insufficient Storage"), refusal_of("AWS Error ACCESS_DENIED")
    ('no space is left', 'access is denied')
    """
    text = str(error)
    if _FULL.search(text):  # first, because servers answer 403 when a quota is used up
        return "no space is left"
    return "access is denied" if _DENIED.search(text) else None


def answer_in(error: object) -> str:
    """Return what the server answered, if the text of an error has it, else that text, in one line.

    >>> answer_in("PUT /b/x in 3.7 ms: <Error><Code>SlowDown</Code><Message>Later.</Message></Error>")
    'SlowDown: Later.'
    >>> answer_in("Connection refused")
    'Connection refused'
    """
    text = str(error)
    for answer in _ANSWERS:
        if found := answer.search(text):
            message = found["message"]
            return one_line(f"{found['code']}: {message}" if message else found["code"])
    return one_line(text)


def explain(error: object) -> str:
    """Return why an object store refused something, in words, and what it answered.

    >>> explain("HTTP status 507: Unable to parse ExceptionName: XMinioStorageFull Message: Delete some.")
    'no space is left: XMinioStorageFull: Delete some.'
    """
    refusal, answer = refusal_of(error), answer_in(error)
    return answer if refusal is None else f"{refusal}: {answer}"
