"""afresh together with Datasette."""
