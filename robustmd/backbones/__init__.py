"""The models: images in, logits out. One file a family."""
