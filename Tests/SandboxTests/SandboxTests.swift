// The first file of SandboxTests.
