"""How are brokers reached, and what does each of their errors mean?"""
