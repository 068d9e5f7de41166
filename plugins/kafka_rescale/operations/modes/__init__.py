"""What do the two modes of an expansion do differently?"""
