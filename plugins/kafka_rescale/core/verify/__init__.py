"""Is the state of the new generation that of the old one?"""
