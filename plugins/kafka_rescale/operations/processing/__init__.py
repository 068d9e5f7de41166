"""How does a run of a pipeline begin and end, and how do its members come and go?"""
