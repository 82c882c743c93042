"""Values that pass between the layers: errors, units, checked arrays and results. Imports no other layer."""
