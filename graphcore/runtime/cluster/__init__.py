"""Sessions over Dask clusters: tasks are actors on workers, joined by one rendezvous."""
