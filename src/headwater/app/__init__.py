"""What is put together from several parts: the demonstration now; supervisor, doctor and verify later."""
