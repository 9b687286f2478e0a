"""From what a run took, to what it would take with other workers, memory, chunks or disks."""
