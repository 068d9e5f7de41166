"""Operators: arguments in, one call, a small result out."""
