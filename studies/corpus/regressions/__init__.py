"""Programs of closed issues of JAX and XLA, as marked tests."""
