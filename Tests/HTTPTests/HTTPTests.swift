// The first file of HTTPTests.
