"""Reports for people and other processes: status, explanations, pulse and exports."""
