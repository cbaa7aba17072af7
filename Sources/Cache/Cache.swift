// The first file of Cache.
