"""Simulated worlds: made-up histories of changes to test policies on."""
