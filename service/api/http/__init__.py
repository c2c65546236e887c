"""HTTP below the routes: connections, authentication, limits, checks of requests, problems."""
