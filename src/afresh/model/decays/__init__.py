"""The decay functions; ``afresh.model.decay`` holds their protocol and their names."""
