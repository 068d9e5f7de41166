"""The partition and the processor that a key belongs to."""
