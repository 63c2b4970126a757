"""Dynamic programming over what is known of the arms: optimum, optimal policy, Gittins index."""
