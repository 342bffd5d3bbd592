"""Fakes and servers for tests, ours and yours."""
