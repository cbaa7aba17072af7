internal import Glibc
internal import Synchronization
internal import SystemIO

/// The point in the journal up to which aliases must not be used without asking their origins: purges may have been missed
/// before it.
///
/// It survives restarts in a file of the cache's directory. Any thread.
final class RevalidationMark: Sendable {
    private static let file = "revalidate"
    private let sequence: Atomic<Int64>

    init(_ directory: CacheDirectory) {
        sequence = Atomic(Self.read(directory))
    }

    /// Takes over the mark of another directory.
    func reload(from directory: CacheDirectory) {
        sequence.store(Self.read(directory), ordering: .relaxed)
    }

    /// Whether an alias was recorded before the mark.
    @inline(__always)
    func covers(aliasSequence: Int64) -> Bool {
        aliasSequence < sequence.load(ordering: .relaxed)
    }

    /// Moves the mark forward. It is in force before the file is written, and durable afterwards.
    func set(_ next: Int64, in directory: CacheDirectory) throws(SystemError) {
        sequence.max(next, ordering: .relaxed)
        let temporary = Self.file + ".new"
        let file = try directory.openFile(temporary, flags: O_WRONLY | O_CREAT | O_TRUNC)
        try DescriptorIO.write(Array("\(next)\n".utf8), to: file.number)
        try retryingOnInterrupt("fdatasync") { fdatasync(file.number) }
        try directory.replaceFile(Self.file, with: temporary)
    }

    private static func read(_ directory: CacheDirectory) -> Int64 {
        let text = (try? SharedDescriptor(directory.openFile(file, flags: O_RDONLY)).readAll()) ?? []
        return Int64(String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)) ?? 0
    }
}
