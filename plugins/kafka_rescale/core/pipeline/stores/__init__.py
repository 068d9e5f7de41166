"""The state stores of a task, over the bytes of their changelogs."""
