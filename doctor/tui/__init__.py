"""The full-screen view, and the only code that imports textual. It asks ``service`` and shows the answer."""
