"""The contents of a daily snapshot, and the question whether a copy may start from it."""
