"""The full-screen view in a browser: who gets in, what is served, and how it looks in a real one."""
