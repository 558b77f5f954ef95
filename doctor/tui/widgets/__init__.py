"""Parts of screens, one a file. Each draws rows of text from a record it was handed."""
