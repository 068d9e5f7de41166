"""The state stores of a task. They read and write the bytes of their changelogs."""
