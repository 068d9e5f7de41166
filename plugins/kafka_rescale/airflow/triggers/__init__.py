"""Triggers: what deferred sensors run in the triggerer."""
