"""How are blue's and green's logs compared?"""
