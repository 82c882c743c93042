"""The loop for real: due, lease, fetch, decide, commit, within a budget that is a promise."""
