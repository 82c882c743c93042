"""Zhang, Tang, Yang & Li, Self-Adaptive Estimation of View Change Frequency, 2007."""
