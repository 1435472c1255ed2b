"""The room that every other one may use: errors, text, files, untrusted input. It imports no other room."""
