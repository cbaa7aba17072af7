import Foundation

/// A new directory, which is removed with the last reference to this object.
final class TemporaryDirectory: Sendable {
    let path: String

    /// - Parameter inMemory: Whether to use a file system in memory, if there is one; for tests that sync often.
    init(inMemory: Bool = false) throws {
        let memory = "/dev/shm"
        let parent =
            inMemory && FileManager.default.isWritableFile(atPath: memory)
            ? URL(filePath: memory) : FileManager.default.temporaryDirectory
        let url = parent.appending(path: "gifreel-cache-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = url.path
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Paths of all files below `part`, relative to it.
    func files(_ part: String = "objects") -> [String] {
        let names = FileManager.default.enumerator(atPath: path + "/" + part)?.allObjects as? [String] ?? []
        return names.filter { $0.contains("/") || part != "objects" }.sorted()
    }

    func contents(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: path + "/" + name)))
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        // Overwrites the file and does not replace it, like a fault of the disk.
        let handle = try FileHandle(forUpdating: URL(filePath: path + "/" + name))
        try handle.truncate(atOffset: 0)
        try handle.write(contentsOf: Data(bytes))
        try handle.close()
    }

    func create(_ name: String, _ bytes: [UInt8] = []) throws {
        let url = URL(filePath: path + "/" + name)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: url)
    }

    func remove(_ name: String) throws {
        try FileManager.default.removeItem(atPath: path + "/" + name)
    }

    func copy(to other: TemporaryDirectory) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            try FileManager.default.copyItem(atPath: path + "/" + name, toPath: other.path + "/" + name)
        }
    }
}
