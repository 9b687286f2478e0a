"""The doctor: names what is wrong with a run, from its record alone."""
