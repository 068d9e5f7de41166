"""Running a pipeline's tasks: what is kept of their state between two runs, and who runs which of them."""
