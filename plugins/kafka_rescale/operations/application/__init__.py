"""Where are the application files, and what do they say?"""
