"""The commands: what each one takes. Their work is imported when they run."""
