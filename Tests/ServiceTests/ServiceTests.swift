// The first file of ServiceTests.
