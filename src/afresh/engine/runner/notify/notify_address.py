"""The address of a person or chat that is told of changes, as Apprise understands it: mail, chat, webhook.

An address holds passwords and tokens. It is never part of a message, of a log line or of a ``repr``.
"""

from __future__ import annotations

import logging
import re
import threading
import warnings
from html import escape
from types import ModuleType
from typing import Any
from urllib.parse import unquote

from afresh.engine.feed.change_message import ChangeMessage
from afresh.engine.settings.tables import SourceTable
from afresh.sources.secrets import HIDDEN, Resolver, Secret, redactor, resolve
from afresh.sources.texts.main_text import check_text_extra
from afresh.values.errors import UsageError
from afresh.values.extras import install_line
from afresh.values.formatting import one_line

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_LOGGER = "apprise"


class NotifyAddress:
    """One address. Any thread may call ``send``. ``name`` is what logs call it; ``hide`` removes its
    parts from a text."""

    def __init__(self, number: int, scheme: str, secret: Secret, service: Any, library: Any) -> None:
        self.name = f"address {number} ({scheme}://{HIDDEN})"
        self._service, self._library = service, library
        pieces = re.split(r"[/:@?&=,;\s]+", secret.reveal().partition("://")[2])
        words = {word for piece in pieces for word in (piece, unquote(piece))}
        self.hide = redactor([secret, *map(Secret, words)])

    def send(self, message: ChangeMessage) -> str:
        """Send a message, which blocks until the service has taken it. Return why it did not take it, or an
        empty string."""
        problems = _ThreadProblems()
        logger = logging.getLogger(_LOGGER)
        logger.addHandler(problems)
        try:
            # Not by ``Apprise.notify``: that sends from a thread for which the program waits at its end.
            sent = self._service.notify(title=message.title, **self._body(message.body))
        finally:
            logger.removeHandler(problems)
        if sent:
            return ""
        return one_line(self.hide("; ".join(problems.texts)) or "the service did not take the message")

    def _body(self, text: str) -> dict[str, Any]:
        """Return the text of a message, and its format: text, but for a service that takes only HTML."""
        formats = self._library.NotifyFormat
        if self._service.notify_format == formats.HTML:
            return {"body": f"<pre>{escape(text)}</pre>", "body_format": formats.HTML}
        return {"body": text, "body_format": formats.TEXT}


class _ThreadProblems(logging.Handler):
    """Collects the warnings that Apprise logs in one thread: they say why a message was not sent."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._thread, self.texts = threading.get_ident(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.texts.append(record.getMessage())


def open_addresses(table: SourceTable, resolver: Resolver) -> list[NotifyAddress]:
    """Return the addresses of the setting ``notify`` of a source. Raise ``UsageError`` if one cannot be
    understood, names a secret that does not exist, or needs an extra that is not installed."""
    if table.notify and table.notification.content != "raw":
        check_text_extra()
    return [_open(number, text, resolver) for number, text in enumerate(table.notify, 1)]


def _open(number: int, text: str, resolver: Resolver) -> NotifyAddress:
    secret = resolve("notify", text, resolver)
    found = _SCHEME.match(secret.reveal())
    library = _load_library()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Apprise loads all its services now, some of them with old modules
        service = found and library.Apprise.instantiate(secret.reveal(), suppress_exceptions=True)
    if found is None or service is None:
        raise UsageError(
            f"notify: address {number} is not understood: write it as Apprise does, such as "
            "mailto://USER:PASSWORD@HOST?to=NAME@HOST or json://HOST/PATH, or env:NAME"
        )
    return NotifyAddress(number, found[1].lower(), secret, service, library)


def _load_library() -> ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import apprise
    except ModuleNotFoundError:
        raise UsageError(f"notify needs more packages: {install_line('notify')}") from None
    # It logs addresses: what matters is collected by ``send``.
    logging.getLogger(_LOGGER).propagate = False
    return apprise
