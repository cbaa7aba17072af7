import Testing

/// Every suite that has workers, one test after the other: each blocks its thread for as long as a worker takes, and tests
/// in parallel would take the threads that others need to go on.
@Suite(.serialized) enum SerialTests {}
