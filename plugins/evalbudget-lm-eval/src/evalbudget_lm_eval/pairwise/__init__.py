"""Which answer is preferred? Judges that compare the answers of finished runs."""
