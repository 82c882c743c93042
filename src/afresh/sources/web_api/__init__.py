"""Web APIs: requests, paging, access and answers, which sources of the kinds ``search`` and ``api`` share."""
