"""One line for a shell that puts a client's files in their places."""

import shlex

from django.utils.translation import gettext, override

from inference.docs import markup
from inference.docs.pages import Page
from inference.docs.values import PLACEHOLDER

NO_KEY = '[ "${k#sk-}" = "$k" ]'
KEY = f"k={{{{ key }}}}; {NO_KEY} && k=${{NAN_API_KEY-}}; "


def one_line(page: Page, folder_url: str) -> str:
    """For all files of the page, each of which `folder_url` has by its name.

    A file that is there already stays as it is; a download that fails leaves nothing. Where a file
    has a key: the one typed into the page, else her shell's own; none is written with the
    placeholder. All in a subshell, so hers is left as it was.
    """
    targets = " ".join(f'"{target.replace("~/", "$HOME/", 1)}"' for target in page.targets)
    key = needs_key(page)
    with override(page.language):
        there, without = (
            gettext("exists, not changed"),
            gettext("not written: type your key into the page first, or set NAN_API_KEY"),
        )
    return (
        f"( {KEY if key else ''}for f in {targets}; do "
        f"""if [ -e "$f" ]; then {_say(there)}; """
        f"{f'elif {NO_KEY}; then {_say(without)}; ' if key else ''}"
        f'else t=$(curl -fsS "{folder_url}${{f##*/}}") && {_write(page, key=key)}; fi; done )'
    )


def needs_key(page: Page) -> bool:
    return any("{{ key }}" in markup.read_code(page.name, file) for file in page.files)


def _say(words: str) -> str:
    return f'echo "$f:" {shlex.quote(words)}'


def _write(page: Page, *, key: bool) -> str:
    """For her alone: it may hold a key."""
    folder = 'mkdir -p "${f%/*}" && ' if "/" in page.path else ""
    put_in = f' | sed "s|{PLACEHOLDER}|$k|"' if key else ""
    return f"""{folder}( umask 077; printf '%s\\n' "$t"{put_in} > "$f" )"""
