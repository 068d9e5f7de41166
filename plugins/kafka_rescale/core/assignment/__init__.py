"""The assignment of tasks to clients: the assignors of KIP-441, KIP-429, KIP-708, and the rules of KIP-924."""
