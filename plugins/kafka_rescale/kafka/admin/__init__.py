"""What does a cluster have, and how is it changed: topics, groups, offsets, transactions?"""
