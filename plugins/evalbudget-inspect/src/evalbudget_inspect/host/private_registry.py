"""The private names of inspect that its entry point of ours needs: every run of inspect imports them."""

from inspect_ai._util.registry import registry_add as registry_add
from inspect_ai._util.registry import registry_lookup as registry_lookup
