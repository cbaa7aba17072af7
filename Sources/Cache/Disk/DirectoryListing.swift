internal import CLinux
internal import Glibc
internal import SystemIO

/// The names in a directory.
enum DirectoryListing {
    /// All names but `.` and `..`, in no order.
    static func names(in path: String, below directory: Int32) throws(SystemError) -> [String] {
        let number = clinux_openat(directory, path, O_RDONLY | O_DIRECTORY, 0)
        guard number >= 0 else { throw .last("open") }
        guard let stream = fdopendir(number) else {
            let error = SystemError.last("fdopendir")
            close(number)
            throw error
        }
        // Closes the descriptor too.
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw .last("readdir") }
                return names
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
    }
}
