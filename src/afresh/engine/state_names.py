"""The names under which the store keeps the engine's state."""

from __future__ import annotations

BUDGET = "engine.budget"
PRIOR = "engine.prior"
THRESHOLD = "engine.threshold"
HOOKS = "engine.hooks"
LISTING = "engine.listing:"
LISTED = "engine.listed:"
LISTED_AT = "engine.listed_at:"
PULSE = "engine.pulse"
COURSE = "engine.course"
ASKED = "engine.asked"
BEGAN = "engine.began"
LEARNED = "engine.learned"
RESTS = "engine.rests:"
NOTES = "engine.notes:"
