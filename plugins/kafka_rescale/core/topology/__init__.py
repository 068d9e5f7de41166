"""The text that ``describe()`` prints, and the partition counts that follow from it."""
