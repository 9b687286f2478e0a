"""The calls, named as in FieldTrip and Syncopy, one in each module."""
