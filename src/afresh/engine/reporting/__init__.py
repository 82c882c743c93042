"""What people and other processes are shown of it all."""
