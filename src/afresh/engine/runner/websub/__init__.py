"""Subscribes to the hubs that feeds name (WebSub), which then tell at once what the feeds publish."""
