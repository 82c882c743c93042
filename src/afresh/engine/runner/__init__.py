"""One run of the engine: pick → lease → fetch → decide → commit, and the tasks besides the polls."""
