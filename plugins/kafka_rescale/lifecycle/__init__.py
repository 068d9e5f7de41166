"""The ways to start and stop an instance set of an application, and to ask whether it runs."""
