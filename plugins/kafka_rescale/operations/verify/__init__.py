"""How is an expansion proven, and a finding accepted?"""
