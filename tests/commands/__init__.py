"""The verbs around a run, as a person types them: real processes, real run directories."""
