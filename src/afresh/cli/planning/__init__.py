"""Commands of the help panel "Plan from files": they read tables and write plans, rates or queries."""
