"""The commands for a shell: they show, check and verify, and carry out what a person decides."""
