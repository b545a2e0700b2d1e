"""Postgres refuses what would change a vote that is open or over, whoever asks.

The error is an integrity error (restrict_violation); the use cases in members.voting ask first and
say it in words.
"""

from django.db import migrations

GUARDS = """
CREATE FUNCTION members_vote_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF OLD.state NOT IN ('preparing', 'cancelled') THEN
      RAISE restrict_violation USING MESSAGE = 'a vote that was opened is not deleted';
    END IF;
    RETURN OLD;
  END IF;
  IF (OLD.state, NEW.state) NOT IN (
    ('preparing', 'preparing'), ('preparing', 'open'), ('preparing', 'cancelled'),
    ('open', 'open'), ('open', 'closed'), ('closed', 'closed'), ('closed', 'ratified'),
    ('ratified', 'ratified'), ('cancelled', 'cancelled')
  ) THEN
    RAISE restrict_violation USING MESSAGE = 'a vote does not go back';
  END IF;
  IF OLD.state = 'preparing' THEN
    IF NEW.state = 'open' AND NEW.closes_at <= clock_timestamp() THEN
      RAISE restrict_violation USING MESSAGE = 'the deadline is over';
    END IF;
    RETURN NEW;
  END IF;
  IF (OLD.slug, OLD.slot_id, OLD.kind, OLD.recalls_id, OLD.opened_at, OLD.quorum_percent,
      OLD.public_result, OLD.roll_size, OLD.roll_digest)
     IS DISTINCT FROM
     (NEW.slug, NEW.slot_id, NEW.kind, NEW.recalls_id, NEW.opened_at, NEW.quorum_percent,
      NEW.public_result, NEW.roll_size, NEW.roll_digest) THEN
    RAISE restrict_violation USING MESSAGE = 'the rules of a vote stand once it is open';
  END IF;
  IF NEW.closes_at IS DISTINCT FROM OLD.closes_at AND NOT (
    OLD.state = 'open' AND NEW.state = 'open' AND clock_timestamp() < OLD.closes_at
    AND NEW.closes_at > OLD.closes_at
    AND EXISTS (
      SELECT 1 FROM members_extension e
      WHERE e.vote_id = OLD.id AND e.closes_at = NEW.closes_at AND e.closed_before = OLD.closes_at
        AND e.confirmed_at IS NOT NULL AND e.asked_by_id <> e.confirmed_by_id
    )
  ) THEN
    RAISE restrict_violation USING MESSAGE = 'a deadline is moved by two admins, before it is over';
  END IF;
  IF OLD.state = 'open' AND NEW.state = 'closed' THEN
    IF clock_timestamp() < OLD.closes_at THEN
      RAISE restrict_violation USING MESSAGE = 'the deadline is not over';
    END IF;
  ELSIF (OLD.result, OLD.ballots_digest, OLD.closed_at)
        IS DISTINCT FROM (NEW.result, NEW.ballots_digest, NEW.closed_at) THEN
    RAISE restrict_violation USING MESSAGE = 'a result comes with the close and stands';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER members_vote_guard BEFORE UPDATE OR DELETE ON members_vote
  FOR EACH ROW EXECUTE FUNCTION members_vote_guard();

-- Waits for whoever is opening the vote at this moment, and then sees it open.
CREATE FUNCTION members_vote_state(vote bigint) RETURNS text LANGUAGE sql AS
  'SELECT state FROM members_vote WHERE id = vote FOR SHARE';

CREATE FUNCTION members_candidate_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (TG_OP <> 'INSERT' AND members_vote_state(OLD.vote_id) <> 'preparing')
     OR (TG_OP <> 'DELETE' AND members_vote_state(NEW.vote_id) <> 'preparing') THEN
    RAISE restrict_violation USING MESSAGE = 'the options of a vote stand once it is open';
  END IF;
  RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER members_candidate_guard BEFORE INSERT OR UPDATE OR DELETE ON members_candidate
  FOR EACH ROW EXECUTE FUNCTION members_candidate_guard();

CREATE FUNCTION members_rollentry_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF (OLD.id, OLD.vote_id) IS DISTINCT FROM (NEW.id, NEW.vote_id) OR NEW.user_id IS NOT NULL THEN
      RAISE restrict_violation USING MESSAGE = 'the roll is frozen';
    END IF;
  ELSIF TG_OP = 'INSERT' THEN
    IF members_vote_state(NEW.vote_id) <> 'preparing' THEN
      RAISE restrict_violation USING MESSAGE = 'the roll is frozen';
    END IF;
  ELSIF members_vote_state(OLD.vote_id) <> 'preparing' THEN
    RAISE restrict_violation USING MESSAGE = 'the roll is frozen';
  END IF;
  RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER members_rollentry_guard BEFORE INSERT OR UPDATE OR DELETE ON members_rollentry
  FOR EACH ROW EXECUTE FUNCTION members_rollentry_guard();

CREATE FUNCTION members_ballot_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM members_vote v WHERE v.id = NEW.vote_id AND v.state = 'open') THEN
    RAISE restrict_violation USING MESSAGE = 'this vote is not open';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER members_ballot_guard BEFORE INSERT OR UPDATE ON members_ballot
  FOR EACH ROW EXECUTE FUNCTION members_ballot_guard();

CREATE FUNCTION members_publishedballot_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    RAISE restrict_violation USING MESSAGE = 'published ballots stand';
  END IF;
  IF NOT EXISTS (
    SELECT 1 FROM members_vote v
    WHERE v.id = NEW.vote_id AND v.state = 'open' AND v.closes_at <= clock_timestamp()
  ) THEN
    RAISE restrict_violation USING MESSAGE = 'ballots are published at the close';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER members_publishedballot_guard BEFORE INSERT OR UPDATE OR DELETE
  ON members_publishedballot FOR EACH ROW EXECUTE FUNCTION members_publishedballot_guard();

-- The planner's samples of a column outlive the rows: none are taken of linked ballots.
ALTER TABLE members_ballot ALTER COLUMN voter_id SET STATISTICS 0;
ALTER TABLE members_ballot ALTER COLUMN vote_id SET STATISTICS 0;
ALTER TABLE members_ballot ALTER COLUMN ranking SET STATISTICS 0;
ALTER TABLE members_ballot ALTER COLUMN receipt SET STATISTICS 0;
ALTER TABLE members_ballot ALTER COLUMN receipt_shown SET STATISTICS 0;
"""

BACK = """
DROP TRIGGER members_vote_guard ON members_vote;
DROP TRIGGER members_candidate_guard ON members_candidate;
DROP TRIGGER members_rollentry_guard ON members_rollentry;
DROP TRIGGER members_ballot_guard ON members_ballot;
DROP TRIGGER members_publishedballot_guard ON members_publishedballot;
DROP FUNCTION members_vote_guard, members_candidate_guard, members_rollentry_guard,
  members_ballot_guard, members_publishedballot_guard, members_vote_state;
"""


class Migration(migrations.Migration):

    dependencies = [("members", "0003_voting")]

    operations = [migrations.RunSQL(GUARDS, BACK)]
