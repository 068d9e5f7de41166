"""Which topics are copied where, and in which order?"""
