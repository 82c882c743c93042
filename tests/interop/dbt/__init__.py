"""afresh together with dbt."""
