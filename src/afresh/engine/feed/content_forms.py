"""The forms in which the content of a change can be asked for.

``raw`` are the bytes of the copy; ``text`` and ``markdown`` are its main text (``engine/texts.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from afresh.engine.logs import log_event
from afresh.engine.texts import TextReader
from afresh.sources.texts.main_text import NoTextError, TextForm
from afresh.stores.store import Store
from afresh.values.errors import AfreshError, UsageError, one_of
from afresh.values.stored import Copy

RAW = "raw"
_TEXT_FORMS: dict[str, TextForm] = {"text": "text", "markdown": "markdown"}
CONTENT_FORMS: tuple[str, ...] = (RAW, *_TEXT_FORMS)
"""The names of the forms."""


@contextmanager
def opened_form(store: Store, name: str | None) -> Iterator[Callable[[Copy], str | None] | None]:
    """Yield a function that returns the text of a copy, None if it has none (such as a picture). Yield None
    in place of the function for ``raw`` and if no content is wanted (``name`` is None)."""
    form = None if name is None else _TEXT_FORMS.get(one_of("form of content", name, CONTENT_FORMS))
    if form is None:
        yield None
        return
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
