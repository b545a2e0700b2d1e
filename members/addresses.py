"""To whom an address belongs: to whoever proves it, and with a password of her own.

Anybody can sign up with anybody's address. So a confirmation counts for the sign-up that caused
it, and for its password only in a browser that knows this password; see docs/decisions.md.
"""

from allauth.account.forms import SignupForm
from allauth.account.models import EmailAddress
from allauth.account.utils import perform_login
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse

from members import mails
from members.models import User

KNOWS = "members.knows"
"""Session key: the account whose password (or GitHub sign-in) this browser has shown to know."""


class Taken(Exception):
    """The address was confirmed, or approved, while somebody else was signing up with it."""


def lock(email: str) -> None:
    """Signing up with an address and confirming it happen one after the other. In a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [email.lower()])


def squatters(email: str) -> QuerySet[User]:
    """Accounts with this address that never confirmed any: nobody can have signed in to them."""
    unproved = User.objects.filter(email__iexact=email, is_staff=False, applications=None)
    return unproved.exclude(emailaddress__verified=True)


def is_taken(email: str) -> bool:
    """Does a sign-up with this address make no new account?

    An account that nobody confirmed gives way, as long as the new one can still be written to:
    else the links that went out before must stay alive.
    """
    if EmailAddress.objects.filter(email__iexact=email, verified=True).exists():
        return True
    unproved = list(squatters(email).values_list("pk", flat=True))
    if User.objects.filter(email__iexact=email).exclude(pk__in=unproved).exists():
        return True
    return bool(unproved) and not mails.may_confirm(email)


def release(email: str, *, keep: User | None = None) -> None:
    """Deletes accounts that hold this address without proof; their links die with them.

    What was mailed to the address stays noted: it counts for the limits.
    """
    gone = squatters(email)
    if keep:
        gone = gone.exclude(pk=keep.pk)
    pks = list(gone.values_list("pk", flat=True))
    mails.orphan(users=pks)
    User.objects.filter(pk__in=pks).delete()


def drop_claims(email: str, *, keep: User | None = None) -> None:
    """Somebody has proved the address: whoever else wanted it, in whatever way, does not get it."""
    EmailAddress.objects.filter(email__iexact=email, verified=False).exclude(user=keep).exclude(
        user__email__iexact=email
    ).delete()
    release(email, keep=keep)


# -- Signing up -------------------------------------------------------------------------------
class SignUpForm(SignupForm):
    """The last sign-up with an address that nobody has confirmed is the one that counts."""

    def validate_unique_email(self, value: str) -> str:
        self.account_already_exists = is_taken(value)
        return value

    def try_save(self, request: HttpRequest) -> tuple[User | None, HttpResponse | None]:
        try:
            saved: tuple[User | None, HttpResponse | None] = super().try_save(request)
        except Taken:
            self.account_already_exists = True
            saved = super().try_save(request)
        return saved

    @transaction.atomic
    def save(self, request: HttpRequest) -> User:
        """Makes the account and puts its mail into the outbox: both or neither."""
        email = self.cleaned_data["email"]
        lock(email)
        if is_taken(email):
            raise Taken
        release(email)
        user: User = super().save(request)
        mails.adopt(user)
        mails.confirm(EmailAddress.objects.get(user=user))
        return user


# -- Confirming -------------------------------------------------------------------------------
def is_change(address: EmailAddress) -> bool:
    """A new address of an account that has a confirmed one, not a sign-up."""
    proven = EmailAddress.objects.filter(user_id=address.user_id, verified=True)
    return bool(proven.exists())


def remember(request: HttpRequest, user: User) -> None:
    """This browser has just shown that it knows how to sign in to this account."""
    request.session[KNOWS] = str(user.public_id)


def knows(request: HttpRequest, user: User) -> bool:
    known: str | None = request.session.get(KNOWS)
    return known == str(user.public_id)


def forget_credentials(user: User) -> None:
    """Every way in that somebody else may have left behind, except the password."""
    for way_in in (SocialAccount, Authenticator):
        way_in.objects.filter(user=user).delete()
    sessions = UserSession.objects.filter(user=user)
    Session.objects.filter(session_key__in=sessions.values("session_key")).delete()
    sessions.delete()
    User.objects.filter(pk=user.pk).update(session_epoch=F("session_epoch") + 1)


def begin_anew(user: User, *, password: str) -> None:
    """Of the sign-up only the address stays. In the transaction of the confirmation."""
    forget_credentials(user)
    user.refresh_from_db()
    user.name = ""
    user.set_password(password)
    user.save(update_fields=["name", "password"])


def sign_in(request: HttpRequest, user: User) -> HttpResponse:
    response: HttpResponse = perform_login(request, user, email=user.email)
    return response
