"""The permissions that each role needs, and the permissions that are missing."""
