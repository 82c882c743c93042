"""What a run does with the links of pages: it adds found pages, and looks for unlinked ones."""
