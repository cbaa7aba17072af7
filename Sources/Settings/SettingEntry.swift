internal import Foundation
package import SystemIO

/// The value of a setting from one source: its texts, or the files that contain them.
struct SettingEntry {
    enum Part {
        case text(String)
        /// The path of a file with a secret.
        case file(String)
    }

    /// The flag, the variable, or the line of the settings file.
    var origin: String
    /// One, or several for a list.
    var parts: [Part]

    /// The entry itself, unless it is an empty secret: a deployment that forgot to fill a variable would start an unprotected
    /// server.
    ///
    /// - Parameter name: The full name of the setting.
    func checked(as name: String) throws(SettingsError) -> SettingEntry {
        let isEmpty = parts.allSatisfy { part in
            if case .text(let text) = part { text.allSatisfy { $0.isWhitespace || $0 == "," } } else { false }
        }
        guard isEmpty, !parts.isEmpty, Setting.named(name)?.isSecret == true else { return self }
        throw SettingsError("\(name) (\(origin)) is empty; give it a value or remove it.")
    }

    /// The origin, followed by the paths of the files.
    var description: String {
        let files = parts.compactMap { if case .file(let path) = $0 { path } else { nil } }
        return ([origin] + files).joined(separator: ", ")
    }

    /// The texts of the setting. Blocks while files are read.
    ///
    /// - Throws: ``SettingsError`` if a file cannot be read or has no text.
    func texts(of setting: Setting, named name: String) throws(SettingsError) -> [String] {
        var texts: [String] = []
        for part in parts {
            switch part {
            case .text(let text):
                // A list may be written as one text, even in a file.
                texts += (setting.shape == .list ? text.split(separator: ",").map(String.init) : [text])
                    .map { $0.trimmingCharacters(in: .whitespaces) }
            case .file(let path):
                let text = try TextFile.read(path, as: "The file \(path) of \(name)")
                let values = (setting.shape == .list ? text.split(whereSeparator: \.isNewline).map(String.init) : [text])
                    .map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }.filter { !$0.isEmpty }
                // An empty file is not a way to unset a secret: a server would start unprotected.
                guard !values.isEmpty else { throw SettingsError("The file \(path) of \(name) (\(origin)) is empty.") }
                texts += values
            }
        }
        return texts
    }
}

/// Text files of a limited length.
package enum TextFile {
    /// A longer file is not a configuration file; it was probably named by mistake.
    private static let maximumBytes = 1 << 20

    /// The text of the file. Blocks.
    ///
    /// - Parameter name: The description of the file in error messages.
    /// - Throws: ``SettingsError`` if the file cannot be read, is too long or is not text.
    static func read(_ path: String, as name: String) throws(SettingsError) -> String {
        let bytes = try translating(try bytes(of: path, atMost: maximumBytes)) { (error: FileError) in
            SettingsError("\(name) cannot be read: \(error.reason).")
        }
        // Replacing invalid bytes would turn a key of random bytes into another key.
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw SettingsError("\(name) is not text in UTF-8.")
        }
        return text
    }

    /// The bytes of a file that a setting names, without a byte order mark, which would be a part of a secret. Blocks.
    package static func bytes(of path: String, atMost limit: Int) throws(FileError) -> [UInt8] {
        var bytes: [UInt8] = []
        // A hyphen does not mean standard input, which a reload could not read again.
        try Files.forEachPiece(of: path == "-" ? "./-" : path) { piece throws(SystemError) in
            bytes += piece
            if bytes.count > limit { throw SystemError("read", code: EFBIG) }
        }
        return bytes.starts(with: [0xef, 0xbb, 0xbf]) ? Array(bytes.dropFirst(3)) : bytes
    }
}
