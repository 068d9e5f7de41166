"""What decides the way of an expansion, from the lag gate to retirement?"""
