"""Small tools of TensorFlow 1 around graphs: cutting, freezing, timelines, nested structures, texts."""
