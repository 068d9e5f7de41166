"""How an instance set of an application is started, stopped, and asked whether it runs."""
