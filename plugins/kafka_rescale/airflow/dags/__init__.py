"""Which tasks does each DAG have, and in which order?"""
