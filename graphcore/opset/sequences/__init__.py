"""Ops on sequences: alignments and recurrent cells."""
