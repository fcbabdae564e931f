"""Leagues: controllers and policies meet on many networks, and the best ones win each game."""
