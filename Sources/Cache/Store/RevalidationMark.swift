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
    /// Whether the directory has another mark, because it could not be written.
    private let isUnwritten = Atomic(false)

    /// - Parameter next: The sequence of the next line of the directory's journal.
    init(_ directory: CacheDirectory, before next: Int64) {
        sequence = Atomic(Self.load(directory, before: next))
    }

    /// Takes over the mark of another directory; see ``init(_:before:)``.
    ///
    /// - Parameter coveringAll: Whether the directory has missed a move of the mark, so that all of its aliases are covered.
    func reload(from directory: CacheDirectory, before next: Int64, coveringAll: Bool = false) {
        isUnwritten.store(false, ordering: .relaxed)
        guard coveringAll else { return sequence.store(Self.load(directory, before: next), ordering: .relaxed) }
        sequence.store(next, ordering: .relaxed)
        // On failure, the mark is in force until the next start.
        try? save(next, to: directory)
    }

    /// Whether an alias was recorded before the mark.
    @inline(__always)
    func covers(aliasSequence: Int64) -> Bool {
        aliasSequence < sequence.load(ordering: .relaxed)
    }

    /// Moves the mark forward. It is in force before the file is written, and durable afterwards.
    func set(_ next: Int64, in directory: CacheDirectory) throws(SystemError) {
        sequence.max(next, ordering: .relaxed)
        try save(next, to: directory)
    }

    /// Writes the mark to the directory if it could not be written.
    ///
    /// - Returns: Whether the directory has the mark.
    func writeAgain(to directory: CacheDirectory) -> Bool {
        guard isUnwritten.load(ordering: .relaxed) else { return true }
        return (try? save(sequence.load(ordering: .relaxed), to: directory)) != nil
    }

    private func save(_ next: Int64, to directory: CacheDirectory) throws(SystemError) {
        isUnwritten.store(true, ordering: .relaxed)
        try Self.write(next, to: directory)
        isUnwritten.store(false, ordering: .relaxed)
    }

    /// The mark of a directory. One beyond the end of the journal is from a journal, or a part of it, that was lost, and would
    /// cover aliases that are recorded later.
    private static func load(_ directory: CacheDirectory, before next: Int64) -> Int64 {
        let mark = read(directory)
        guard mark > next else { return mark }
        // On failure, the next start may ask origins that it need not ask.
        try? write(next, to: directory)
        return next
    }

    private static func write(_ sequence: Int64, to directory: CacheDirectory) throws(SystemError) {
        let temporary = file + ".new"
        let descriptor = try directory.openFile(temporary, flags: O_WRONLY | O_CREAT | O_TRUNC)
        try DescriptorIO.write(Array("\(sequence)\n".utf8), to: descriptor.number)
        try retryingOnInterrupt("fdatasync") { fdatasync(descriptor.number) }
        try directory.replaceFile(file, with: temporary)
    }

    private static func read(_ directory: CacheDirectory) -> Int64 {
        let text = (try? SharedDescriptor(directory.openFile(file, flags: O_RDONLY)).readAll()) ?? []
        return Int64(String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)) ?? 0
    }
}
