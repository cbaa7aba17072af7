// The first file of TestSupport.
