"""What people and other processes are shown: status, explanations, the pulse, exports."""
