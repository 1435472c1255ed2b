"""The conversion of artifacts for readers that refuse them: envelope, module, custom calls; and the proof of each."""
