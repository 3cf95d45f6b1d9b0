"""The functions that graphs call: instantiated once, and run by executors."""
