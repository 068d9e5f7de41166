"""The decision whether an application grows now, and to how many partitions."""
