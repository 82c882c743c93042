"""The forms in which the content of a change can be asked for: by name, each a function.

``raw`` are the bytes of the copy. Another form turns them into a text, by an optional package that its
function imports; it is one line of ``_TEXT_FORMS``. The function receives the content and its media type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from afresh.values.errors import one_of

TextForm = Callable[[bytes, str], str]

RAW = "raw"
_TEXT_FORMS: Mapping[str, TextForm] = {}
CONTENT_FORMS: tuple[str, ...] = (RAW, *_TEXT_FORMS)
"""The names of the forms."""


def find_text_form(name: str | None) -> TextForm | None:
    """Return the function of a form, None for ``raw`` and where no content is wanted.

    >>> find_text_form("rawr")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown form of content 'rawr': did you mean 'raw'? One of raw
    """
    if name is None:
        return None
    return _TEXT_FORMS.get(one_of("form of content", name, CONTENT_FORMS))
