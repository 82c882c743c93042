"""Tells people of changes, by mail, chat or webhook."""
