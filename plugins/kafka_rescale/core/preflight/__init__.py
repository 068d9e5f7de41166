"""May this expansion begin?"""
