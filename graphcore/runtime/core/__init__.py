"""The common part of both engines: programs, feeds, fetches, events, cancellation, memory."""
