"""A measurement of how well numbers are judged: correct programs that must pass, and planted errors that must not."""
