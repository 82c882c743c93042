"""The version of the package. It is stated only here."""

__version__ = "0.1.0"
