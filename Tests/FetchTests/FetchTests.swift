// The first file of FetchTests.
