"""Should the application grow now, and to how many partitions?"""
