internal import Glibc

/// The one owner of a file descriptor: closes it when it goes.
package struct OwnedDescriptor: ~Copyable, Sendable {
    /// The descriptor's number, valid as long as the owner lives.
    package let number: Int32

    /// Takes over an open descriptor. Nobody else may close it.
    package init(taking number: Int32) {
        self.number = number
    }

    deinit {
        Glibc.close(number)
    }

    /// Gives the descriptor away without closing it.
    package consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }

    /// A second descriptor for the same open file, closed on `exec`.
    package func duplicate() throws(SystemError) -> OwnedDescriptor {
        let copy = dup(number)
        guard copy >= 0 else { throw SystemError.last("dup") }
        guard fcntl(copy, F_SETFD, FD_CLOEXEC) == 0 else {
            let error = SystemError.last("fcntl")
            Glibc.close(copy)
            throw error
        }
        return OwnedDescriptor(taking: copy)
    }
}
