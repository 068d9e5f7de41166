"""Running a pipeline's tasks: which state is kept between two runs, and which thread runs which task?"""
