internal import Glibc

/// Standard error of a command.
package enum StandardError {
    /// Writes `text`, and blocks while the reader of a pipe stalls. A full disk or a closed pipe loses the text: no other
    /// output is left to report that on.
    package static func write(_ text: String) {
        // A signal would end the command before it returns its exit code.
        signal(SIGPIPE, SIG_IGN)
        var text = text
        text.withUTF8 { try? DescriptorIO.write(UnsafeRawBufferPointer($0), to: STDERR_FILENO) }
    }
}
