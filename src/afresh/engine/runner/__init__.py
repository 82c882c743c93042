"""The run: due → lease → fetch → decide → commit, and the tasks beside it."""
