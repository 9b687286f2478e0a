"""Play a run through with other numbers: no files, no clock, no Dask."""
