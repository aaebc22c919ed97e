"""The words of towline: pure data and pure functions, without I/O."""

from towline_protocol.errors import ProtocolError, TowlineError, UsageError, VersionMismatch
from towline_protocol.faults import FAULT_CODES, Fault, FaultCode

__all__ = [
    "FAULT_CODES",
    "Fault",
    "FaultCode",
    "ProtocolError",
    "TowlineError",
    "UsageError",
    "VersionMismatch",
]
