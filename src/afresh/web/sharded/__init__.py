"""The pages and the API of a cluster: many engines under one price."""
