"""Choices of a comparison or a sweep: values of keys, their grammar, and transports."""
