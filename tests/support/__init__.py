"""Support of tests in several rooms: servers, proxies, documents, counters. Fixtures stay in conftests."""
