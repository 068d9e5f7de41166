"""How is a range of a log read, and what has a group committed?"""
