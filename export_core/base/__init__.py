"""What every other folder may use: errors, text, files, untrusted input. It imports nothing else of this package."""
