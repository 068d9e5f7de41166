"""How does an expansion begin, wait, go back and end?"""
