"""What tests of several rooms share: servers, proxies, documents, counters. Fixtures stay in conftests."""
