"""What a plan may pursue: one file for each objective, and the table of all of them."""
