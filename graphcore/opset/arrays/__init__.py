"""Ops that arrange elements: slices, gathers, joins, pads, segments."""
