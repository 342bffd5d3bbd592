"""The command line: a thin layer over the SDK. Every command is a file; each imports what it needs when it runs."""
