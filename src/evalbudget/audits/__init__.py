"""Which answer should a human label? Policies, the store of labels, the page to give them on."""
