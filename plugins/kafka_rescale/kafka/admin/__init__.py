"""What does a cluster have, and how does it change: topics, groups, offsets, transactions?"""
