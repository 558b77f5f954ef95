"""Alerts that leave the machine: what is said, to whom, how often, and that a broken receiver disturbs nothing."""
