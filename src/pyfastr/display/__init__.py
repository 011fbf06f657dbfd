"""Reports: documents of text, tables and figures, as Markdown, LaTeX and HTML."""
