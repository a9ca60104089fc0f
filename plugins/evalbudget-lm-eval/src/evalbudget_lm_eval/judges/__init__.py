"""Judges that are models of the host: how they are named, asked and read."""
