"""What may each role do, and what is missing?"""
