"""How does a Spark job copy: restore, warm up, catch up, bridge, move?"""
