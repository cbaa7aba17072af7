// The first file of Media.
