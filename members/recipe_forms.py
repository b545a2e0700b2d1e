"""Forms of recipes and known problems."""

from django import forms
from django.utils.translation import gettext_lazy as _

from members.models import Recipe


class EditForm(forms.Form):
    title = forms.CharField(label=_("Title"), max_length=100, min_length=5)
    version = forms.CharField(
        label=_("Version of the client"),
        help_text=_("The one you tried it with, such as 2.0.16."),
        max_length=40,
    )
    body = forms.CharField(
        label=_("Text"),
        help_text=_(
            "Markdown, without pictures. Write YOUR_KEY where a key goes: anything that looks "
            "like a real one is refused."
        ),
        min_length=20,
        max_length=8000,
        widget=forms.Textarea(attrs={"rows": 14, "spellcheck": "true"}),
    )


class RecipeForm(EditForm):
    kind = forms.ChoiceField(
        label=_("What is it?"), choices=Recipe.Kind.choices, widget=forms.RadioSelect
    )
    field_order = ("kind", "title", "version", "body")
