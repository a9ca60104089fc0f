"""Several models on one task: who they are, and what the host needs to ask them."""
