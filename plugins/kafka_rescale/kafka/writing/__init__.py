"""How are records written in transactions?"""
