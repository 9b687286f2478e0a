"""Long proofs that a run never dies of memory and never loses a chunk: ``make soak``."""
