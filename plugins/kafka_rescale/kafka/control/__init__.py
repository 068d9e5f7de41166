"""How are journal, lease and job results read and written?"""
