"""The parts of OpenVINO models."""
