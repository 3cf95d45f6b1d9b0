"""Settings of the site that `make docs` builds."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from graphcore.release import package_version

project = "Graphloupe"
author = "The Graphloupe authors"
project_copyright = author
release = version = package_version
root_doc = "notebooks/docs/index"
extensions = ["myst_nb"]
html_theme = "furo"
html_title = f"Graphloupe {release}"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
myst_enable_extensions = []
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # nothing is loaded from elsewhere
# Live views leave a still picture in the same cell, which needs no kernel.
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
