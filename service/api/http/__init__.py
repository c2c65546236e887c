"""HTTP below the routes: who asks, how much, in which form, and how an error is told."""
