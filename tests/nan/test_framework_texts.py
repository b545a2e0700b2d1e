"""What Django, allauth and the rest say in Spanish on our pages says tú, as our own texts do."""

import re
from collections.abc import Iterator
from pathlib import Path

import django
import polib
from django.apps import apps
from django.conf import settings
from django.utils import translation

OURS = settings.BASE_DIR / "locale" / "vendor" / "es" / "LC_MESSAGES" / "django.po"
USTED = re.compile(
    r"\b(usted|ustedes|su|sus|introdu(z|zc)a|introducir(lo|la)|ingrese|asegúrese|seleccione|elija"
    r"|escoja|escriba|envíe|suba|corrija|compruebe|verifique|confirme|vuelva|observe|(des)?marque"
    r"|utilice|use|intente|inténtelo|indique|haga|pulse|inicie|desea|le preocupa"
    r"|recibirá|solicite|habilite|deba"
    r"|(?<!se )ha (enviado|configurado|olvidado|iniciado|cerrado|recibido|solicitado|decidido"
    r"|indicado))\b",
    re.IGNORECASE,
)
SHOWN_BY_ADMIN_ONLY = "django.contrib.admin"
# Of Django's own page about a form without its token (ours is 403_csrf.html), and of its page for
# a new project.
NEVER_SHOWN = (
    "You are seeing this message because",
    "You are seeing this page because",
    "If you have configured your browser",
    "If you are using the <meta",
)
OF_SOMEBODY_ELSE = {
    # «sus grupos»: the user's; «su final»: the range's.
    "The groups this user belongs to. A user will get all permissions granted to each of their"
    " groups.",
    "The start of the range must not exceed the end of the range.",
}


def catalogues() -> Iterator[Path]:
    """Of each installed package that is not ours, as it came."""
    roots = [Path(django.__file__).parent / "conf"]
    roots += [Path(one.path) for one in apps.get_app_configs() if one.name != SHOWN_BY_ADMIN_ONLY]
    for root in roots:
        found = root / "locale" / "es" / "LC_MESSAGES" / "django.po"
        if found.exists() and not found.is_relative_to(settings.BASE_DIR / "locale"):
            yield found


def texts() -> Iterator[polib.POEntry]:
    for file in catalogues():
        yield from (entry for entry in polib.pofile(str(file)) if not entry.obsolete)


def can_be_shown(entry: polib.POEntry) -> bool:
    """allauth's own identity provider (`idp`) is not installed."""
    elsewhere = entry.occurrences and all("idp/" in file for file, _ in entry.occurrences)
    return not elsewhere and not entry.msgid.startswith(NEVER_SHOWN)


def shown(entry: polib.POEntry) -> list[str]:
    with translation.override("es"):
        if entry.msgid_plural:
            both = (entry.msgid, entry.msgid_plural)
            return [translation.ngettext(*both, 1), translation.ngettext(*both, 2)]
        if entry.msgctxt:
            return [translation.pgettext(entry.msgctxt, entry.msgid)]
        return [translation.gettext(entry.msgid)]


def test_nobody_is_called_usted() -> None:
    formal = [
        text
        for entry in texts()
        if can_be_shown(entry) and entry.msgid not in OF_SOMEBODY_ELSE
        for text in shown(entry)
        if USTED.search(text)
    ]
    assert formal == []


def test_what_we_say_instead_still_has_its_source() -> None:
    """An update of a package that words a text anew would bring its own translation back."""
    known = {(entry.msgctxt, entry.msgid, entry.msgid_plural) for entry in texts()}
    ours = {(entry.msgctxt, entry.msgid, entry.msgid_plural) for entry in polib.pofile(str(OURS))}
    assert ours - known == set()
    assert len(ours) > 150


def test_what_we_say_instead_keeps_what_is_filled_in() -> None:
    wrong = [
        entry.msgid
        for entry in polib.pofile(str(OURS))
        for text in (entry.msgstr, *entry.msgstr_plural.values())
        if text and names(text) != names(entry.msgid)
    ]
    assert wrong == []


def names(text: str) -> set[str]:
    return {match[0] for match in re.finditer(r"%\(\w+\)[sd]|%[sd]|\{\w+\}", text)}
