"""Razniewski, Optimizing Update Frequencies for Decaying Information, CIKM 2016."""
