from members.models.applications import Application, Decision
from members.models.mails import Mail
from members.models.memberships import Membership, MembershipEvent
from members.models.people import User

__all__ = ["Application", "Decision", "Mail", "Membership", "MembershipEvent", "User"]
