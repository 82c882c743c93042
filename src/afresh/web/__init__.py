"""The API and the dashboard: one engine's project over HTTP."""
