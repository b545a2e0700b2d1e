"""What an admin asks of the fleet on a page."""

from functools import partial

from inference.fleet.errors import FleetRefused
from inference.fleet.words import said
from nan import asking

attempt = partial(asking.attempt, refusals=FleetRefused, words=said)
