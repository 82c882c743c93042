"""One decay function per file; ``afresh.model.decay`` holds what they have in common and their names."""
