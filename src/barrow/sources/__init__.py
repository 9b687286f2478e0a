"""Open what a scientist holds as a source, without reading it.

Each format is one small module that turns its data into a
:class:`~barrow.model.source.Source` and stops there. None of them knows chunks,
workers or steps, and none imports its library before it is needed.
"""
