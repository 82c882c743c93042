"""Whether rates are steady: forgetting of old evidence, and hour-of-week seasons."""
