"""The forms in which the content of a change can be asked for: ``raw``, or a text that is taken from it.

``raw`` are the bytes of the copy. ``text`` and ``markdown`` are its main text; see ``engine/texts.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from afresh.engine.logs import log_event
from afresh.sources.texts.main_text import TEXT_FORMS, NoTextError
from afresh.stores.store import Store
from afresh.values.errors import AfreshError, UsageError, one_of
from afresh.values.stored import Copy

TextOf = Callable[[Copy], str | None]
"""A function that returns the text of a copy, or None if it has none that can be read."""

RAW = "raw"
CONTENT_FORMS: tuple[str, ...] = (RAW, *TEXT_FORMS)
"""The names of the forms."""


@contextmanager
def open_form(store: Store, name: str) -> Iterator[TextOf | None]:
    """Yield the function that takes the texts of the form ``name`` from copies, or None for ``raw``. Raise
    ``UsageError`` for an unknown form, and if the extra ``text`` is needed but not installed.

    >>> CONTENT_FORMS
    ('raw', 'text', 'markdown')
    """
    one_of("form of content", name, CONTENT_FORMS)
    form = next((known for known in TEXT_FORMS if known == name), None)
    if form is None:
        yield None
        return
    from afresh.engine.texts import TextReader

    with TextReader(store) as texts:

        def text_of(copy: Copy) -> str | None:
            try:
                return texts.text_of(copy, form)
            except UsageError:
                raise
            except NoTextError:
                return None
            except AfreshError as error:  # one copy that cannot be read must not stop those who follow
                log_event(logging.WARNING, "a change comes without its text", problem=str(error))
                return None

        yield text_of
