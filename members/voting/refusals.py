"""Why something about a vote is not possible, in words for the one who asked."""

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

WORDS: "dict[str, StrPromise]" = {
    # Proposals
    "not_member": _("Only members can do this."),
    "bad_repo": _("This is not a Hugging Face repository. Paste its address or owner/name."),
    "not_a_model": _(
        "This is the address of something else at the hub, such as a data set. Paste the one of a"
        " model, or owner/name."
    ),
    "no_reason": _("Write a reason: it will be read."),
    "too_many": _("You have three open proposals. Withdraw one, or wait until it is decided."),
    "runs_now": _("This model runs now; keeping it is on every ballot."),
    "duplicate": _("This model is proposed already. You can second that proposal."),
    "own_proposal": _("You proposed it yourself; that counts already."),
    "decided": _("This proposal has been decided."),
    "not_yours": _("Only who proposed a model can withdraw it."),
    "on_ballot": _("This model is on a ballot already: it needs no more seconds. Rank it there."),
    "bad_fact": _("This value is not possible. Nothing was saved."),
    "active_more": _("For each token no more parameters can be used than there are in all."),
    "weights_odd": _(
        "The size of the weights and the number of parameters do not go together: a parameter takes"
        " from 0.1 to 16 bytes. Is one of them in another unit?"
    ),
    # Preparing
    "slug_taken": _("There is a vote of this name. Choose another."),
    "other_slot": _("This proposal is for something else."),
    "nothing_runs": _("Nothing runs here yet, so there is nothing to vote about."),
    "no_candidate": _("Besides the current model at least one more must be on the ballot."),
    "current_changed": _(
        "Another model runs now than when the ballot was prepared. Prepare it again."
    ),
    "no_deadline": _("Say until when ballots are taken."),
    "in_the_past": _("This time is in the past."),
    "opens_after_close": _("It must open before it closes."),
    "closes_too_late": _("A vote closes at most 60 days after it opens. Choose an earlier day."),
    "closes_too_soon": _("A vote closes at least 24 hours after it opens. Choose a later time."),
    "opens_too_late": _("A vote opens within a year from now. Choose an earlier day."),
    "other_open": _("Another vote about this is open. Wait until it is over."),
    "swap_ahead": _("A swap of this slot is not over. Wait until it is, or cancel it."),
    "nobody": _("There is no active member, so nobody could vote."),
    "fixed": _("This vote is open or over: options, rules and dates can't change any more."),
    "recall_fixed": _(
        "Members asked for this recall: its options, rules and dates are fixed, no admin cancels"
        " it, and it opens by itself as soon as nothing stands in the way."
    ),
    # Extending
    "not_later": _("The new deadline must be later than the one that stands."),
    "too_late": _("The deadline is over, so it can't be moved any more."),
    "second_admin": _("Another admin must confirm it."),
    "confirmed": _("This was confirmed already."),
    "superseded": _("The deadline was moved meanwhile. Ask again."),
    "changed_meanwhile": _(
        "Another admin changed this round after you had opened the page. Nothing was saved; what"
        " you typed stands here still. Look at the round as it is now, then send it again."
    ),
    "facts_changed": _(
        "Another admin, or the hub, changed these facts after you had opened the page. Nothing was"
        " saved; what you typed stands here still. Look at the facts as they are now, then send it"
        " again."
    ),
    # Voting
    "not_open": _("This vote is not open yet."),
    "over": _("This vote is over; this ballot was not counted."),
    "waiting": _("You are on the waitlist. Who is a member when a vote opens can vote."),
    "unconfirmed": _("Your e-mail address is not confirmed, so you were no member at the opening."),
    "suspended": _("Your membership is suspended, so you can't vote."),
    "left": _("You have left, so you can't vote."),
    "not_on_roll": _("You became a member after this vote had opened. You can vote in the next."),
    "empty_ballot": _("Rank at least one option. Nothing was stored."),
    "bad_ballot": _("Each option can be ranked once, with a whole number. Nothing was stored."),
    "option_unknown": _(
        "An option that you ranked is not on this ballot. Look at the options below and cast it"
        " again. Nothing was stored."
    ),
    "option_twice": _(
        "An option has two numbers. Choose one number for each and cast it again. Nothing was"
        " stored."
    ),
    "rank_too_big": _(
        "A number is higher than there are options. Choose lower ones and cast it again. Nothing"
        " was stored."
    ),
    "no_ballot": _("There is no ballot of yours, so there is no receipt."),
    # After the close
    "not_closed": _("This vote is not over yet."),
    "before_deadline": _("The deadline is not over. A vote can't be closed early."),
    "quorum": _("The quorum was missed: the current model stays."),
    "kept": _("The current model was chosen: nothing is to be done."),
    "tie": _("The result is a tie. Nothing follows by itself; confirm that you want this plan."),
    "done": _("This was ratified already."),
    "outdated": _("There has been a later vote, or one is open: this result counts no more."),
    "model_missing": _("The model is not in the catalogue yet. Add it with its engine flags."),
    "other_model": _("This entry of the catalogue is another repository than the one chosen."),
    "starts_too_late": _("A rotation starts within a year from now. Choose an earlier day."),
    "no_announcement": _("Write the announcement in Spanish and in English."),
    # Recall
    "no_rotation": _("There is no rotation that can be recalled now."),
}


class Refused(Exception):
    """Nothing was changed. `code` is stable; the text is in the reader's language."""

    def __init__(self, code: str, words: Any = "") -> None:
        super().__init__(code)
        self.code = code
        self._words = words

    def __str__(self) -> str:
        return str(self._words or words(self.code))


def words(code: str) -> str:
    return str(WORDS.get(code, code))
