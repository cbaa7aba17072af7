// The first file of CacheTests.
