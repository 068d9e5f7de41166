"""How do the tasks of a pipeline run in Spark?"""
