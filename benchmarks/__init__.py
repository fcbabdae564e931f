"""The papers' tables and figures, parity of the engines, speed."""
