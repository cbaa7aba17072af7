// The first file of HTTP.
