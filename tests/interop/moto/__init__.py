"""afresh together with moto."""
