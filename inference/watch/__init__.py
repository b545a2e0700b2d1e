"""Is a replica in service still well? A pure decision over a few samples, and how to take one.

Figures, and why:
- One completion of at most 4 tokens every 60 s, given 20 s. It costs an engine nothing, and it is
  the only proof: `/health` stays 200 while an engine hangs. 20 s is far above the queueing of a
  well engine and is the limit that a smoke check allows.
- After a failure the next one comes after 15 s, and two in a row decide. Worst case for a hang
  that begins right after a good sample: 60 + 20 + 15 + 20 = 115 s; without the hurry it would be
  160 s. Both are within three minutes, and one lost request alone takes nothing out of the pool.
- A timeout while the engine produces tokens for others is load, not a hang: taking it out would
  push that load onto its neighbours. It is only reported.
- Slowness is time to first token, of members' own requests, held against the slot's other replicas
  under the same load (`first_tokens`): 10 s can be right for one model and absurd for another, and
  what all of them meet is load. Where no other one serves it is held against the replica's own
  first minutes; that can lead to an alert only, since the last one stays.
"""

from inference.watch.probing import probe
from inference.watch.samples import Sample
from inference.watch.verdicts import Verdict, condemned, judge, pause_before_next

__all__ = ["Sample", "Verdict", "condemned", "judge", "pause_before_next", "probe"]
