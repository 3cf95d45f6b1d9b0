"""What both engines share: programs, feeds, fetches, events, cancellation, memory."""
