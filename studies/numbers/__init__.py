"""How well numbers are judged: correct programs that must pass in every release, and planted errors that must not."""
