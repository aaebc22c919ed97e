"""Models and their providers: keys, sign-ins, and what was used."""

from towline_protocol.commands.body import Body
from towline_protocol.faults import Fault
from towline_protocol.messages import Usage

__all__ = [
    "ChangeProvider",
    "DefaultModel",
    "FinishSignIn",
    "KeyTest",
    "LocalModelState",
    "ModelInfo",
    "ModelList",
    "ProviderInfo",
    "ProviderList",
    "ProviderTest",
    "SignInStarted",
    "StartSignIn",
    "UsageReport",
    "UsageRow",
]


class ModelInfo(Body, frozen=True, kw_only=True):
    """One model, and what is known of it; what is left out nobody knows."""

    model: str
    """`provider/model`."""
    live: bool = False
    """Whether its provider has just said that it offers it."""
    window: int | None = None
    """Tokens that fit, answer included."""
    output_cap: int | None = None
    """The most tokens of one answer."""
    thinking: str = ""
    """How it thinks: `none`, `budget`, `adaptive` or `effort`; empty when unknown."""
    refuses: tuple[str, ...] = ()
    """Controls that it refuses, such as `temperature`."""
    fast: bool = False
    """Whether it is cheap and quick."""
    images: bool | None = None
    """Whether it sees pictures."""
    price_input: float | None = None
    """US dollars for a million input tokens."""
    price_output: float | None = None
    """US dollars for a million output tokens."""
    price_cache_read: float | None = None
    """US dollars for a million tokens out of the cache; left out for the price of input."""
    price_cache_write: float | None = None
    """US dollars for a million tokens into the cache; left out for the price of input."""
    dearer_from: int | None = None
    """From so many input tokens on a request costs more than these prices say."""


class ModelList(Body, frozen=True, kw_only=True):
    """The models of every provider that can be asked."""

    default: str
    """The one of new sessions."""
    models: tuple[ModelInfo, ...]
    """By provider, in the order in which these would be taken."""
    faults: dict[str, Fault]
    """By provider: why it could not be asked just now; then its known models stand in the list."""
    prices_date: str = ""
    """The day of the prices, `YYYY-MM-DD`."""


class DefaultModel(Body, frozen=True, kw_only=True):
    """The model of sessions that name none."""

    model: str | None = None
    """`provider/model`; in a wish, left out to let the server choose by what is there."""


class LocalModelState(Body, frozen=True, kw_only=True):
    """How the built-in model stands, which is fetched once and runs on the server's machine."""

    state: str
    """`off` (nobody has asked for it), `fetching`, `loading`, `ready`, `reading`, `writing` or
    `failed`."""
    done_bytes: int = 0
    """While it is fetched: the bytes that are there."""
    total_bytes: int = 0
    """While it is fetched: the bytes of all of it."""
    source: str = ""
    """While it is fetched: where from."""
    message: str | None = None
    """Why it failed and what to do; or what the fetch has to say."""
    percent: int | None = None
    """While it reads: how much of the prompt it has read; left out when that is not known."""
    tokens_s: float | None = None
    """While it writes: tokens in a second; left out when that is not known."""


class ProviderInfo(Body, frozen=True, kw_only=True):
    """One provider, and how it is reached. Holds no secret."""

    provider: str
    """The first part of `provider/model`."""
    title: str
    """Its name for people."""
    state: str
    """`ready`, `keyless` (it needs no key; a test says whether it answers), `missing` (a key or an
    address is) or `unreadable` (what is kept cannot be read now)."""
    found: str | None = None
    """Where its credential is: `environment`, `keyring`, `file`, or `sign_in` where that is all."""
    setting: str | None = None
    """The environment variable that holds it."""
    key: str | None = None
    """The last four characters of the key that is asked with first."""
    backup_keys: tuple[str, ...] = ()
    """The last four characters of each key that stands in for it, in order."""
    signed_in: bool = False
    """Whether a sign-in is kept."""
    can_sign_in: bool = False
    """Whether it has a sign-in."""
    signing_in: bool = False
    """Whether a sign-in waits for a person's consent."""
    base_url: str = ""
    """Where it is asked; empty when nobody has said."""
    own_url: bool = False
    """Whether that is another address than its own."""
    can_move: bool = False
    """Whether another address can be set."""
    ca_file: str | None = None
    """A PEM file on the server that is trusted for it besides the system's."""
    model: str | None = None
    """Its usual model, as `provider/model`."""
    problem: str | None = None
    """What is wrong, and what to do next."""


class ProviderList(Body, frozen=True, kw_only=True):
    """All providers that are known, the usable ones first."""

    providers: tuple[ProviderInfo, ...]
    """One row each."""


class ChangeProvider(Body, frozen=True, kw_only=True):
    """How a provider is to be reached; what is left out stays. Its `repr` shows no key."""

    key: str | None = None
    """The key to ask with first."""
    backup_keys: tuple[str, ...] | None = None
    """All keys that stand in for it, in order; an empty list removes them. One that is kept may be
    written as `ProviderInfo` shows it."""
    base_url: str | None = None
    """Another address, as people paste it; empty for its own one."""
    ca_file: str | None = None
    """A PEM file on the server to trust for it; empty for none."""

    def __repr__(self) -> str:
        return f"ChangeProvider(base_url={self.base_url!r}, ca_file={self.ca_file!r})"


class KeyTest(Body, frozen=True, kw_only=True):
    """What became of one key, or of the sign-in."""

    key: str
    """Its last four characters, or `sign-in`."""
    found: str
    """Where it is, as in `ProviderInfo.found`."""
    works: bool
    """Whether it works, as far as can be told."""
    message: str
    """One sentence."""


class ProviderTest(Body, frozen=True, kw_only=True):
    """What a provider said when it was asked for its models."""

    provider: str
    """Who was asked."""
    models: tuple[str, ...] = ()
    """What it offers, by its own names."""
    keys: tuple[KeyTest, ...] = ()
    """Each key by itself, the sign-in at the end."""
    fault: Fault | None = None
    """Why it cannot be used; left out when it can."""


class StartSignIn(Body, frozen=True, kw_only=True):
    """Who signs in, with a registration of their own. Its `repr` shows no secret."""

    client_id: str | None = None
    """The OAuth client; left out to take the server's environment."""
    client_secret: str | None = None
    """Its secret, if it has one."""
    project: str | None = None
    """The project that requests are counted for."""

    def __repr__(self) -> str:
        return f"StartSignIn(client_id={self.client_id!r}, project={self.project!r})"


class SignInStarted(Body, frozen=True, kw_only=True):
    """A sign-in waits for a person's consent."""

    url: str
    """The page to open."""
    expires_at: str
    """RFC 3339 time; then it is given up."""


class FinishSignIn(Body, frozen=True, kw_only=True):
    """The way back from the consent. Its `repr` shows no code."""

    address: str | None = None
    """Where the browser ended, pasted; left out when it ran on the server's own machine."""

    def __repr__(self) -> str:
        return "FinishSignIn()"


class UsageRow(Body, frozen=True, kw_only=True):
    """What was used in one day, of one model or in one session."""

    name: str
    """The day (`YYYY-MM-DD`, UTC), the model or the session's id; empty in a total."""
    title: str | None = None
    """The session's title; left out when it has none, or is deleted."""
    requests: int
    """Answers, and sums of what was paid for beside them, such as a summary."""
    usage: Usage
    """Tokens."""
    cost: float | None = None
    """US dollars of all requests whose price is known; left out when that is none of them."""
    unpriced: int = 0
    """Requests whose price is not known: the cost is that much too low."""


class UsageReport(Body, frozen=True, kw_only=True):
    """What a user has used."""

    by: str
    """`day`, `model` or `session`."""
    first: str
    """The first day that is counted, `YYYY-MM-DD`, UTC."""
    last: str
    """The last one."""
    rows: tuple[UsageRow, ...]
    """Days, newest first; models and sessions, the dearest first. 400 at most."""
    total: UsageRow
    """All of it, also what has no row here."""
    today_cost: float
    """US dollars of today, as far as prices are known."""
    daily_cost: float | None = None
    """US dollars that a day may cost; left out for no bound."""
