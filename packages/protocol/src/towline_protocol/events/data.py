"""The two shapes below every event."""

import msgspec

__all__ = ["Data", "EventData"]


class Data(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value inside an event; unset fields stay off the wire."""


class EventData(Data, frozen=True, kw_only=True, tag_field="type"):
    """A fact, past tense, frozen; its wire tag is its name in snake case."""
