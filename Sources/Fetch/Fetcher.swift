// The first file of Fetch.
