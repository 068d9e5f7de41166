"""What does an application file say, and what follows from its names?"""
