"""How do records get from a topic of blue into its successor, each exactly once?"""
