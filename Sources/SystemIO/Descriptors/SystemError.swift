internal import Glibc

/// A failed system call: its name and `errno`.
package struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The system call or operation, such as `open`.
    package let operation: String
    /// The value of `errno` after the failure.
    package let code: Int32

    package init(_ operation: String, code: Int32) {
        self.operation = operation
        self.code = code
    }

    /// Returns an error for `operation` with the calling thread's `errno`. Call this directly after the failed call.
    package static func last(_ operation: String) -> SystemError {
        SystemError(operation, code: errno)
    }

    package var description: String {
        switch code {
        case EMFILE: "\(operation): file descriptors are exhausted (limit \(DescriptorLimit.current))"
        default: "\(operation): \(String(cString: strerror(code)))"
        }
    }
}

/// Retries a system call while a signal interrupts it (`EINTR`).
///
/// - Parameters:
///   - operation: The operation that the error names.
///   - call: The call; a negative result means failure with `errno` set.
/// - Returns: The call's result, never negative.
/// - Throws: ``SystemError`` with the call's `errno`.
@inline(__always)
@discardableResult
package func retryingOnInterrupt<Result: SignedInteger>(
    _ operation: @autoclosure () -> String, _ call: () -> Result
) throws(SystemError) -> Result {
    while true {
        let result = call()
        if result >= 0 { return result }
        let code = errno
        if code != EINTR { throw SystemError(operation(), code: code) }
    }
}
