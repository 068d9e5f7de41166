"""How does a task of a pipeline read its inputs, write its outputs and keep its changelogs?"""
