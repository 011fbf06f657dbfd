"""Settings of the documentation site, which `make docs` builds."""

import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import matplotlib as mpl  # noqa: E402

import pyfastr  # noqa: E402

# Examples draw into files; nobody waits at a window.
mpl.use("agg")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project = "pyfastr"
author = "The pyfastr developers"
project_copyright = "the pyfastr developers"
release = version = pyfastr.__version__

extensions = [
    "local_links",
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["_build", "results", "reproduction.template.md", "**/GALLERY_HEADER.rst"]
# sphinx-gallery puts a function in here, which cannot be kept between two builds.
suppress_warnings = ["config.cache"]

# Formulas become MathML, which browsers draw without a script.
html_math_renderer = "mathml"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_use_plots = False
# The shell's prompt and Python's are not to be copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

FOLDERS = ["start", "data", "models", "inference", "compare", "results"]
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    # Printed in the README, or run by a command: not part of the gallery.
    "ignore_pattern": r"(^|/)(?!plot_)\w+\.py$",
    "subsection_order": [f"../examples/{folder}" for folder in FOLDERS],
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("pyfastr",),
    "inspect_global_variables": False,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    # The page of times would load scripts from the network.
    "write_computation_times": False,
    "nested_sections": False,
    "image_srcset": ["2x"],
}

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_title = "pyfastr"
html_static_path = ["_static"]
html_css_files = ["pyfastr.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "pyfastr"},
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "install": [], "quickstart": [], "notation": []}
