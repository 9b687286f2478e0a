"""How Sphinx builds the site: from the Markdown of this folder and the docstrings of the package.

``make docs`` builds it without a network, and its pages ask for nothing from one.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import barrow

project = "barrow"
author = "The barrow developers"
version = release = barrow.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "commands"]
exclude_patterns = ["notebooks/**"]

# Links to headings of a page: [Halo](use-a-halo.md#how-wide).
myst_heading_anchors = 3
# Dashes as in a book, quotes as they were written: names are pasted.
smartquotes_action = "D"

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"barrow {release}"
html_static_path = ["_static"]
html_css_files = ["own.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
language = "en"
pygments_style = "friendly"
pygments_dark_style = "monokai"
