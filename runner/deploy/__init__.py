"""A trained model put to use: written as ONNX and held against torch, asked for answers, described on a card."""
