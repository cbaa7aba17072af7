internal import Glibc

/// The connection of a stream to systemd's journal.
enum JournalStream {
    /// Whether a descriptor is the stream that the service manager connected to the journal. A program that a service starts inherits
    /// the variable, but may have another stream.
    ///
    /// - Parameter variable: The value of `JOURNAL_STREAM`: device and inode of the stream, separated by a colon (systemd.exec(5)).
    static func isConnected(_ descriptor: Int32, variable: String?) -> Bool {
        var status = stat()
        guard let variable, fstat(descriptor, &status) == 0 else { return false }
        return variable == "\(status.st_dev):\(status.st_ino)"
    }
}
