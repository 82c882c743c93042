"""What other servers tell: webhooks, and hubs of feeds (WebSub). All of it becomes notices."""
