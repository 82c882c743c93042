"""Commands of the help panel "Prove it": they measure policies on recorded, simulated and live data."""
