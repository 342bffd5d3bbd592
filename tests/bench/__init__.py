"""Benchmarks, each with its baseline in the same run: `make bench`."""
