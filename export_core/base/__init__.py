"""The ground floor: errors, text, files, input that nobody vouches for. It imports nothing of this package."""
