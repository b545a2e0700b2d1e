from members.models.applications import Application, Decision
from members.models.mails import Mail
from members.models.memberships import Membership, MembershipEvent
from members.models.news import News
from members.models.people import User
from members.models.proposals import Proposal, Second
from members.models.recipes import Recipe, RecipeEdit, RecipeVote
from members.models.votes import (
    Ballot,
    Candidate,
    Extension,
    PublishedBallot,
    RecallSignature,
    RollEntry,
    Vote,
)

__all__ = [
    "Application",
    "Ballot",
    "Candidate",
    "Decision",
    "Extension",
    "Mail",
    "Membership",
    "MembershipEvent",
    "News",
    "Proposal",
    "PublishedBallot",
    "RecallSignature",
    "Recipe",
    "RecipeEdit",
    "RecipeVote",
    "RollEntry",
    "Second",
    "User",
    "Vote",
]
