"""A measurement of how well numbers are judged: correct programs must pass, and planted errors must not pass."""
