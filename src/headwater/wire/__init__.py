"""Bytes to messages and back: pure functions over buffers. No sockets, no threads, no clock."""
