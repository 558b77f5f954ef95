"""Starting a run, proving who its process is, and what is missing for it."""
