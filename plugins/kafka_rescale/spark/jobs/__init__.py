"""How does a Spark job start, beat, stop, and say what it did?"""
