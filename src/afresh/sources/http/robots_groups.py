"""Cut a robots.txt down to the groups that concern one user agent, in one pass over its lines. Pure.

A file may name many user agents and then many rules, which apply to each of them. A parser that gives every
agent its own list of rules needs time and memory for their product. Only the groups of this program and of
``*`` matter, so that the parser sees a few agents at most, and its work grows with the length of the file.
"""

from __future__ import annotations

from collections.abc import Iterator

# The spellings that protego accepts, which are more than those of RFC 9309.
_AGENT_FIELDS = frozenset({"user-agent", "useragent", "user agent"})
_SITEMAP_FIELDS = frozenset({"sitemap", "sitemaps", "site-map"})
_GROUP_FIELDS = frozenset(
    {"allow", "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"}
    | {"crawl-delay", "crawl delay", "request-rate", "request rate", "visit-time", "visit time"}
)
_FIELDS = _AGENT_FIELDS | _SITEMAP_FIELDS | _GROUP_FIELDS | {"host"}


def own_groups(text: str, agent: str) -> str:
    """Return the lines of a robots.txt that concern ``agent``: groups for it or for all agents, and sitemaps.

    >>> text = "User-agent: x\\nUser-agent: afresh\\nDisallow: /a\\nUser-agent: y\\nDisallow: /b\\nSitemap: s"
    >>> own_groups(text, "afresh").splitlines()
    ['user-agent: afresh', 'disallow: /a', 'sitemap: s']
    """
    return "\n".join(_own_lines(text, agent.lower()))


def _own_lines(text: str, agent: str) -> Iterator[str]:
    concerned, in_rules = False, True
    for line in text.splitlines():
        field, value = _split(line)
        if field in _AGENT_FIELDS:
            if in_rules:  # the first agent after rules starts a new group
                concerned, in_rules = False, False
            name = value.lower() if value == "*" else value.lower().replace("*", "")
            if name and (name == "*" or agent.startswith(name)):
                concerned = True
                yield f"user-agent: {name}"
        elif field in _SITEMAP_FIELDS:
            if value:
                yield f"sitemap: {value}"
        elif field is not None and field != "host":
            in_rules = True
            if concerned and value and field in _GROUP_FIELDS:
                yield f"{field}: {value}"


def _split(line: str) -> tuple[str | None, str]:
    """Return the field, in lower case, and the value of a line; the field is None if the line has none.

    >>> _split(" Disallow : /x # all"), _split("User agent foo"), _split("# nothing")
    (('disallow', '/x'), ('user agent', 'foo'), (None, ''))
    """
    line = line.partition("#")[0].strip()
    field, colon, value = line.partition(":")
    field = field.strip().lower()
    if not line:
        return None, ""
    if colon and (field in _FIELDS or not value or value[0].isspace()):
        return field, value.strip()
    words = line.split(maxsplit=2)
    for count in (1, 2):
        if (name := " ".join(words[:count]).lower()) in _FIELDS:
            return name, " ".join(line.split()[count:])
    return (field, value.strip()) if colon else (None, "")
