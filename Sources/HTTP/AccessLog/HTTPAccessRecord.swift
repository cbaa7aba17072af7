package import SystemIO

/// One finished request, as a view of its batch.
package struct HTTPAccessRecord: ~Copyable {
    /// The client, as a trusted proxy tells it or as the connection has it; nil on a Unix socket.
    package let client: IPAddress?
    /// Seconds since 1970 when it finished.
    package let time: Int
    /// Microseconds from the complete head to the last byte handed to the kernel.
    package let duration: Int
    /// Status of the answer; 0 where the client left before there was one.
    package let status: Int
    /// Bytes of the answer's body handed to the kernel.
    package let bytes: Int
    /// Whether all of the answer was.
    package let isComplete: Bool
    /// The method; empty where the request line could not be read. Valid during the call, as all the bytes here.
    package let method: UnsafeRawBufferPointer
    /// The target; empty where the request line could not be read.
    package let target: UnsafeRawBufferPointer
    package let requestID: UnsafeRawBufferPointer
    /// The answer's `Cache-Status`; empty without one.
    package let cacheStatus: UnsafeRawBufferPointer
    /// The value of `Referer`; empty without one, and without ``HTTPServerConfiguration/recordsClientFields``.
    package let referrer: UnsafeRawBufferPointer
    /// The value of `User-Agent`; empty without one, and without ``HTTPServerConfiguration/recordsClientFields``.
    package let userAgent: UnsafeRawBufferPointer
}
