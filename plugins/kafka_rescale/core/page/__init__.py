"""The contents of the page about an application."""
