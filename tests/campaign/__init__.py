"""A campaign: parts that search for failures for as long as they are given."""
