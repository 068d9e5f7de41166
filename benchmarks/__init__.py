"""How long the pause is, how fast the copy is, and what today's way costs: on one machine, in one run."""
