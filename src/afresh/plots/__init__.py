"""Plots as PNG or SVG pictures, drawn by matplotlib."""
