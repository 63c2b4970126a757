"""Other libraries' interfaces: a file for each library, which needs it only if it is imported."""
