"""afresh together with dagster."""
