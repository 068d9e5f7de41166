"""How is a snapshot of the state written and read?"""
