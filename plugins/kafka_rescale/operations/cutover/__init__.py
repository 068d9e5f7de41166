"""How does the work go from blue to green?"""
