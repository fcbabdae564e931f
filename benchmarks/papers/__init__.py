"""The papers' experiments: tables, figures, verdicts, report."""
