"""A budget for every parse: large untrusted inputs are parsed by processes with limits of time and memory."""
