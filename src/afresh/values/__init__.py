"""What passes between the layers: errors, units, checked arrays, frozen results. Imports nothing above it."""
