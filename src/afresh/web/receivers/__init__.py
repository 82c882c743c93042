"""Receives what other servers tell, at addresses that need no token: the requests are signed."""
