"""A server without network and clock, for tests of programs that use a client.

`ScriptedServer` keeps sessions in memory and plays a script for every prompt; `ScriptedTransport`
puts a client straight on it. Faults are asked for by name: a cut after so many frames, a lost
reply, doubled frames, a loss, another log, pages that no towline server sent.

`ChaosProxy` does harm of all kinds in front of a real server; see `towline_client.testing.chaos`.
"""

from towline_client.testing.chaos import ChaosProxy, Faults
from towline_client.testing.clock import ManualClock
from towline_client.testing.connect import QUICK, connect
from towline_client.testing.feed import ScriptedFeed
from towline_client.testing.log import ScriptedSession, ScriptedStream
from towline_client.testing.reply import refuse
from towline_client.testing.server import ScriptedServer
from towline_client.testing.transport import ScriptedTransport
from towline_client.testing.turn import Script, ScriptedTurn

__all__ = [
    "QUICK",
    "ChaosProxy",
    "Faults",
    "ManualClock",
    "Script",
    "ScriptedFeed",
    "ScriptedServer",
    "ScriptedSession",
    "ScriptedStream",
    "ScriptedTransport",
    "ScriptedTurn",
    "connect",
    "refuse",
]
