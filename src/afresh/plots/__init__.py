"""Pictures, by matplotlib, as PNG or SVG."""
