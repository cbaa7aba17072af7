// The first file of Service.
