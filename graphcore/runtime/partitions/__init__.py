"""Runs of partitioned graphs: one executor for each device, joined by a rendezvous."""
