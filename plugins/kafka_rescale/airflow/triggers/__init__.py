"""Triggers: what deferred tasks run in the triggerer."""
