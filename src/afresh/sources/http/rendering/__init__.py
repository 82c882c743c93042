"""Pages as a browser shows them. The browser is the user's, and reaches the network through a proxy."""
