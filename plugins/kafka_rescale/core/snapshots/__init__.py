"""What is in a daily snapshot, and may a copy start from it?"""
