"""The API and the dashboard, which show one engine's project over HTTP."""
