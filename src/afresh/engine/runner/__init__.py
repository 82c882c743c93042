"""One run: pick → lease → fetch → decide → commit, and the tasks beside that."""
