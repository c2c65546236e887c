"""The order of times between a leader and its successor.

A leader knows since when its lock is certain: since it sent the question that was answered last.
From there on, on its own clock:

| after | |
|---|---|
| `RENEW_S` | it asks again |
| `ANSWER_S` | a question is not answered any more: it connects anew |
| `SESSION_ENDS_S` | the server ends a session that is silent, and so gives the lock back |
| `YIELDS_S` | without an answer it leads no more: no changes, and its runners are asked to stop |
| `RUNNERS_GONE_S` | the last of them is killed |
| `TAKES_OVER_S` | so long a successor holds the lock before it leads |

The lock can be another's at the earliest when the last answer was sent, so a successor leads when
the runners of its predecessor have been gone for `TAKES_OVER_S - RUNNERS_GONE_S`. After the end of
a leader that nobody has told of, it takes `SESSION_ENDS_S + RENEW_S + TAKES_OVER_S` at the most.
"""

RENEW_S = 1.0
AGAIN_S = 0.3  # after an error; a leader whose server was restarted comes before a standby
ANSWER_S = 3
SESSION_ENDS_S = 8.0
YIELDS_S = 9.0
RUNNERS_GONE_S = 13.0
TAKES_OVER_S = 15.0
DECIDES_S = 0.2
