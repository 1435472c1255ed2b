"""A finished run as people and other systems read it: a document, and a renderer for each medium."""
