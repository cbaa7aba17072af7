/// Names a connection of a loop: its descriptor's number, and a generation that tells it from an earlier connection
/// with the same number.
struct ConnectionToken: Sendable, Hashable {
    let descriptor: Int32
    /// Never 0.
    let generation: UInt32

    init(descriptor: Int32, generation: UInt32) {
        self.descriptor = descriptor
        self.generation = generation
    }

    /// As it goes through epoll; values below 2^32 are left for what is no connection.
    var encoded: UInt64 { UInt64(generation) << 32 | UInt64(UInt32(bitPattern: descriptor)) }

    init(encoded: UInt64) {
        descriptor = Int32(bitPattern: UInt32(truncatingIfNeeded: encoded))
        generation = UInt32(encoded >> 32)
    }
}
