// The first file of Sandbox.
