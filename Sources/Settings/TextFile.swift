internal import SystemPackage

/// Reads text files of a limited length.
enum TextFile {
    /// A file over this is no configuration file, such as one named by mistake.
    private static let maximumBytes = 1 << 20

    /// The text of the file. Blocks.
    ///
    /// - Throws: ``SettingsError`` if the file cannot be read or is too long.
    static func read(_ path: String) throws(SettingsError) -> String {
        do throws(Errno) {
            let file = try systemCall { try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec) }
            defer { try? file.close() }
            var bytes: [UInt8] = []
            let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 1)
            defer { chunk.deallocate() }
            while bytes.count <= maximumBytes {
                let count = try systemCall { try file.read(into: chunk) }
                if count == 0 { break }
                bytes += chunk[..<count]
            }
            guard bytes.count <= maximumBytes else { throw .fileTooLarge }
            return String(decoding: bytes, as: UTF8.self)
        } catch {
            throw SettingsError("The configuration file \(path) cannot be read: \(error).")
        }
    }

    /// The system calls of SystemPackage throw nothing but ``Errno``.
    private static func systemCall<Value>(_ body: () throws -> Value) throws(Errno) -> Value {
        do { return try body() } catch { throw error as? Errno ?? .ioError }
    }
}
