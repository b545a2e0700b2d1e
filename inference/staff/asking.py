"""What an admin asks of the fleet on a page."""

from functools import partial

from inference.fleet.errors import FleetRefused
from inference.fleet.words import words
from nan import asking

attempt = partial(asking.attempt, refusals=FleetRefused, words=lambda refusal: words(refusal.code))
