"""Rows for admins to look things up; what changes them is done on the staff pages.

What records a decision can be neither changed nor deleted here.
"""

from typing import Any

from allauth.account import admin as _account_admin  # noqa: F401  (registers what is replaced)
from allauth.account.models import EmailAddress
from allauth.mfa import admin as _mfa_admin  # noqa: F401
from allauth.mfa.models import Authenticator
from allauth.socialaccount import admin as _social_admin  # noqa: F401
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions import admin as _sessions_admin  # noqa: F401
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth import admin as _auth_admin  # noqa: F401
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from members import outbox
from members.models import (
    Application,
    Candidate,
    Decision,
    Extension,
    Mail,
    Membership,
    MembershipEvent,
    News,
    Proposal,
    Recipe,
    RecipeEdit,
    User,
    Vote,
)
from nan.admin import ReadOnlyAdmin, ReadOnlyInline

# Rights are "staff" or nothing, GitHub's application comes from the settings, and its tokens are
# not kept: nothing to see. The others are shown below in a way that changes nothing.
for hidden in (
    Group,
    SocialApp,
    SocialToken,
    EmailAddress,
    SocialAccount,
    Authenticator,
    UserSession,
):
    admin.site.unregister(hidden)


def link(row: Any, text: Any = None) -> SafeString | str:
    """To another row's page, or a dash."""
    if row is None:
        return "–"
    name = f"admin:{row._meta.app_label}_{row._meta.model_name}_change"
    return format_html('<a href="{}">{}</a>', reverse(name, args=[row.pk]), text or row)


class PersonalAdmin(ReadOnlyAdmin):
    show_full_result_count = False
    list_per_page = 50

    def has_module_permission(self, request: HttpRequest) -> bool:
        return True  # the site itself is open to staff with a second factor only

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    @admin.display(description=_("person"))
    def person(self, row: Any) -> SafeString | str:
        return link(row.user)


@admin.register(User)
class UserAdmin(PersonalAdmin):
    """Only who is staff can be changed here; everything else has its own page and its own rules."""

    list_display = ("email", "name", "state", "is_active", "is_staff", "date_joined")
    list_filter = ("is_active", "is_staff", "membership__state")
    list_select_related = ("membership",)
    search_fields = ("email__istartswith", "name__istartswith")
    ordering = ("-pk",)
    fields = (
        "email",
        "name",
        "language",
        "public_id",
        "date_joined",
        "last_login",
        "is_active",
        "rows",
        "is_staff",
        "is_superuser",
    )
    readonly_fields = fields[:-2]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    @admin.display(description=_("membership"))
    def state(self, user: User) -> str:
        membership = getattr(user, "membership", None)
        return membership.get_state_display() if membership else "–"

    @admin.display(description=_("rows"))
    def rows(self, user: User) -> SafeString:
        mine = "?user__id__exact={}"
        return format_html(
            '<a href="{}{q}">{}</a> · <a href="{}{q}">{}</a> · <a href="{}{q}">{}</a>',
            reverse("admin:members_application_changelist"),
            _("applications"),
            reverse("admin:members_membershipevent_changelist"),
            _("membership events"),
            reverse("admin:members_mail_changelist"),
            _("mails"),
            q=mine.format(user.pk),
        )


@admin.register(Application)
class ApplicationAdmin(PersonalAdmin):
    list_display = ("pk", "person", "state", "tokens_per_day", "referred_by", "applied_at")
    list_filter = ("state", "tokens_per_day", "applied_at")
    list_select_related = ("user",)
    search_fields = ("user__email__istartswith", "user__name__istartswith")
    ordering = ("-pk",)


@admin.register(Decision)
class DecisionAdmin(PersonalAdmin):
    list_display = ("at", "action", "whose", "by", "reason_code", "final_at", "undone_at")
    list_filter = ("action", "reason_code", "at")
    list_select_related = ("application__user", "actor")
    search_fields = ("application__user__email__istartswith", "actor__email__istartswith")
    ordering = ("-pk",)

    @admin.display(description=_("application"))
    def whose(self, decision: Decision) -> SafeString | str:
        return link(decision.application, decision.application.user)

    @admin.display(description=_("decided by"))
    def by(self, decision: Decision) -> SafeString | str:
        return link(decision.actor)


@admin.register(Membership)
class MembershipAdmin(PersonalAdmin):
    list_display = ("pk", "person", "state", "since", "left_at")
    list_filter = ("state", "since")
    list_select_related = ("user",)
    search_fields = ("user__email__istartswith", "user__name__istartswith")
    ordering = ("-pk",)


@admin.register(MembershipEvent)
class MembershipEventAdmin(PersonalAdmin):
    list_display = ("at", "person", "action", "by", "reason")
    list_filter = ("action", "at")
    list_select_related = ("user", "actor")
    search_fields = ("user__email__istartswith",)
    ordering = ("-pk",)

    @admin.display(description=_("by"))
    def by(self, event: MembershipEvent) -> SafeString | str:
        return link(event.actor)


@admin.register(Mail)
class MailAdmin(PersonalAdmin):
    list_display = ("created_at", "to", "kind", "state", "attempts", "why", "due_at", "sent_at")
    list_filter = ("state", "kind", "created_at")
    search_fields = ("to__istartswith",)
    ordering = ("-pk",)
    actions = ("send_again",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Mail]:
        """Without receipts: who has asked for hers has voted, and how many have is not shown."""
        return super().get_queryset(request).exclude(kind=Mail.Kind.VOTE_RECEIPT)

    @admin.display(description=_("error"))
    def why(self, mail: Mail) -> str:
        return mail.error_text

    @admin.action(description=_("Send again"), permissions=["view"])
    def send_again(self, request: HttpRequest, mails: QuerySet[Mail]) -> None:
        count = outbox.retry(mails)
        self.message_user(request, _("%(count)d to be sent again.") % {"count": count})


@admin.register(EmailAddress)
class EmailAddressAdmin(PersonalAdmin):
    list_display = ("email", "person", "verified", "primary")
    list_filter = ("verified", "primary")
    list_select_related = ("user",)
    search_fields = ("email__istartswith",)
    ordering = ("-pk",)


@admin.register(SocialAccount)
class SocialAccountAdmin(PersonalAdmin):
    list_display = ("provider", "uid", "person", "date_joined", "last_login")
    list_select_related = ("user",)
    search_fields = ("user__email__istartswith", "uid")
    ordering = ("-pk",)
    fields = ("provider", "uid", "user", "date_joined", "last_login")


@admin.register(Authenticator)
class AuthenticatorAdmin(PersonalAdmin):
    """Second factors without their secrets. A lost one is deleted here, after asking who she is."""

    list_display = ("person", "type", "created_at", "last_used_at")
    list_filter = ("type",)
    list_select_related = ("user",)
    search_fields = ("user__email__istartswith",)
    ordering = ("-pk",)
    fields = ("user", "type", "created_at", "last_used_at")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)


@admin.register(UserSession)
class UserSessionAdmin(PersonalAdmin):
    list_display = ("person", "created_at", "last_seen_at")
    list_select_related = ("user",)
    search_fields = ("user__email__istartswith",)
    ordering = ("-pk",)
    fields = ("user", "created_at", "last_seen_at")


@admin.register(Proposal)
class ProposalAdmin(PersonalAdmin):
    list_display = ("proposed_at", "repo", "slot", "state", "facts_state", "facts_error")
    list_filter = ("state", "facts_state")
    list_select_related = ("slot",)
    search_fields = ("repo__icontains",)
    ordering = ("-pk",)


class PersonalInline(ReadOnlyInline):
    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True


class CandidateInline(PersonalInline):
    model = Candidate
    fields = ("position", "title", "repo", "model")


class ExtensionInline(PersonalInline):
    model = Extension
    fields = ("closes_at", "reason", "asked_by", "asked_at", "confirmed_by", "confirmed_at")


@admin.register(Vote)
class VoteAdmin(PersonalAdmin):
    """Linked ballots and the roll are not here: nobody needs them, and they would count."""

    list_display = ("slug", "slot", "kind", "state", "opened_at", "closes_at", "roll_size")
    list_filter = ("state", "kind")
    list_select_related = ("slot",)
    search_fields = ("slug__istartswith",)
    ordering = ("-pk",)
    inlines = (CandidateInline, ExtensionInline)


class RecipeEditInline(PersonalInline):
    model = RecipeEdit
    fields = ("title", "version", "state", "author", "at", "decided_by", "decided_at", "reason")


@admin.register(Recipe)
class RecipeAdmin(PersonalAdmin):
    list_display = ("client", "kind", "current", "author", "made_at", "withdrawn_at")
    list_filter = ("kind", "client")
    list_select_related = ("current", "author")
    search_fields = ("client__istartswith",)
    ordering = ("-pk",)
    inlines = (RecipeEditInline,)


@admin.register(News)
class NewsAdmin(PersonalAdmin):
    list_display = ("at", "text_en", "author", "withdrawn_at")
    list_select_related = ("author",)
    ordering = ("-at", "-pk")
