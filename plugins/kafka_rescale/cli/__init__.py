"""The read-only steps of an expansion from a shell."""
