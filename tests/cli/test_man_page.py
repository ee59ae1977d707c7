"""The manual page and the page of the command line are those of the command, and are well-formed."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from docs import write_command_line
from docs.make_man_page import PAGE, page
from tfconvert.cli.main import main


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python docs/make_man_page.py"


def test_the_page_of_the_command_line_is_current() -> None:
    written = write_command_line.PAGE.read_text("utf-8")
    assert written == write_command_line.page(), "run: python docs/write_command_line.py"


def test_every_verb_and_option_is_there() -> None:
    told = page().replace("\\-", "-")
    for command in (main, *main.commands.values()):
        for parameter in command.params:
            assert all(name in told for name in parameter.opts if name.startswith("-")), parameter
    for name in main.commands:
        assert f".SS {name}\n" in told


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_the_page_is_well_formed() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww"], input=page(), capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    assert "tfconvert opt saved_model/" in done.stdout
