"""What does ``describe()`` print, and which partition counts follow from it?"""
