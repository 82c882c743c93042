"""Small made-up worlds to probe: a server of papers with skewed words and authors, and a relation of some."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.probes.keyword_index import KeywordIndex, index_corpus, index_relation, parse_keywords

ATTRIBUTES = (parse_keywords("authors:;"), parse_keywords("title"))


@dataclass(frozen=True)
class World:
    keys: list[str]
    relation: KeywordIndex
    server_keys: list[str]
    server: KeywordIndex


def make_world(seed: int, *, records: int = 300, tuples: int = 60, words: int = 60) -> World:
    """Records by a few dozen authors; the relation holds the papers of some of them, up to ``tuples``."""
    rng = np.random.default_rng(seed)
    common = 1.0 / np.arange(1, words + 1)
    titles = [
        " ".join(f"w{word}" for word in rng.choice(words, rng.integers(2, 6), p=common / common.sum()))
        for _ in range(records)
    ]
    people = max(4, records // 12)
    authors = [
        ";".join(f"Author {name}" for name in rng.integers(people, size=rng.integers(1, 4))) for _ in titles
    ]
    chosen = {f"Author {name}" for name in rng.choice(people, max(2, people // 4), replace=False)}
    theirs = [place for place, text in enumerate(authors) if chosen & set(text.split(";"))]
    own = sorted(rng.permutation(theirs)[:tuples].tolist())  # no page of the server's is fuller than another
    keys = [f"p{place}" for place in range(records)]
    texts = {"title": titles, "authors": authors}
    relation = index_relation({name: [column[i] for i in own] for name, column in texts.items()}, ATTRIBUTES)
    server = index_corpus(relation, texts, ATTRIBUTES)
    return World([keys[place] for place in own], relation, keys, server)
