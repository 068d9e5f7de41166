"""Does an application file agree with its topology?"""
