"""Imported once by the process that forks trainers for the kill tests."""

import transformers

import runner.trainer

LOADED = (runner.trainer, transformers.BertForSequenceClassification, transformers.BertTokenizerFast)
