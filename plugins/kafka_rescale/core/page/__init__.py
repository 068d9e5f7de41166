"""What does the page show of an application?"""
