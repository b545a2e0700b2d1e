"""One line for a shell that puts a client's file in its place."""

from inference.docs import markup
from inference.docs.pages import Page
from inference.examples import PLACEHOLDER


def one_line(page: Page, url: str) -> str:
    """With a place for the key if the file has one. A file that is there already stays as it is;
    a download that fails leaves nothing."""
    target = page.path.replace("~/", "$HOME/", 1)
    folder = 'mkdir -p "${f%/*}" && ' if "/" in target else ""
    has_key = "{{ key }}" in markup.read_code(page.name, page.file)
    key = "NAN_API_KEY={{ key }}; " if has_key else ""
    put_in = f' | sed "s|{PLACEHOLDER}|$NAN_API_KEY|"' if has_key else ""
    return (
        f'{key}f="{target}"; [ -e "$f" ] && echo "$f: exists, not changed" || '
        f"{{ t=$(curl -fsS {url}) && {folder}"
        f"""( umask 077; printf '%s\\n' "$t"{put_in} > "$f" ); }}"""
    )
