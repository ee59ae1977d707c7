"""MkDocs hooks for the pages that are generated from the code, and for links between pages; see `site_pages.py`."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.site_pages import PAGES, adapted, loaded_from_network


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    for name, make in PAGES.items():
        files.append(File.generated(config, name, content=make()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adapts the text of a page to the site."""
    return adapted(markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Returns a finished page unchanged; a page that would load anything from a network fails the build."""
    if found := loaded_from_network(output):
        raise PluginError(f"{page.file.dest_uri} would load {', '.join(found)}")
    return output
