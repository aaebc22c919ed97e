"""Keys and sign-ins of this user: where they lie, and how the product finds them."""

from towline.secrets.credential import login_credential, stored_credential
from towline.secrets.keys import MAX_KEYS, add_key, check_secret, set_keys
from towline.secrets.provider import (
    Kept,
    Login,
    edit_keys,
    forget_login,
    keep_key,
    keep_login,
    kept_secrets,
    read_kept,
    stored_kept,
    stored_keys,
    stored_providers,
)
from towline.secrets.store import SecretStore, SecretsUnavailable
from towline.secrets.wallet import PERSON_S, START_S, Placed, Wallet, open_wallet

__all__ = [
    "MAX_KEYS",
    "PERSON_S",
    "START_S",
    "Kept",
    "Login",
    "Placed",
    "SecretStore",
    "SecretsUnavailable",
    "Wallet",
    "add_key",
    "check_secret",
    "edit_keys",
    "forget_login",
    "keep_key",
    "keep_login",
    "kept_secrets",
    "login_credential",
    "open_wallet",
    "read_kept",
    "set_keys",
    "stored_credential",
    "stored_kept",
    "stored_keys",
    "stored_providers",
]
