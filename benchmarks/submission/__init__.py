"""Submissions: a policy with its results in one archive, and the runs that verify it."""
