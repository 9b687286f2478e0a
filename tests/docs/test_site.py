"""The site builds without a network and without a warning, and all that it points to is there."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import barrow

ROOT = Path(__file__).parents[2]
FIELDS = ("collider", "ephys", "miniscope", "spatial")
# A build takes some 12 s of CPU, which on a busy machine may be minutes.
pytestmark = pytest.mark.timeout(600)
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """The ids of a page, where it links to, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(found["href"])
        if found.get(LOADED.get(tag)):
            self.loads.append(found[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built from scratch, with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--fresh-env"]
    command = [sys.executable, "-m", "sphinx", *options, "-d", str(folder / "trees")]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(folder / "html")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site):
    """All pages by their path."""
    return {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}


def test_every_page_of_the_docs_is_a_page_of_the_site(site):
    for source in (ROOT / "docs").rglob("*.md"):
        page = site / source.relative_to(ROOT / "docs").with_suffix(".html")
        assert page.exists(), f"{source} is not in the site"


def test_every_link_and_every_anchor_leads_somewhere(pages):
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path.name} links to {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, f"{path.name}: {link}"


def test_pages_load_nothing_from_a_network(site, pages):
    for path, page in pages.items():
        assert not [load for load in page.loads if urlsplit(load).netloc], path.name
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", sheet.read_text()), sheet


def test_the_reference_has_every_public_name(pages):
    ids = set().union(*(page.ids for page in pages.values()))
    public = [f"barrow.{name}" for name in barrow.__all__]
    for field in FIELDS:
        module = getattr(barrow, field)
        names = [name for name in module.__all__ if callable(getattr(module, name))]
        public += [f"barrow.{field}.{name}" for name in names]
    assert not [name for name in public if name not in ids]


def test_the_words_are_spelt_as_words_are():
    texts = [
        ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "src")
    ]
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", *map(str, texts)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
