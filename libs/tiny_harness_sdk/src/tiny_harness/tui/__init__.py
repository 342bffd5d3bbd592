"""The terminal's surfaces: a full-screen one and a line mode. A2A clients and nothing else."""
