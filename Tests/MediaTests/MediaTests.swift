// The first file of MediaTests.
