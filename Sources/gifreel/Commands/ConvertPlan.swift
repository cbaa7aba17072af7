internal import Foundation
internal import Glibc
internal import Media
internal import SystemIO

/// The files that `gifreel convert` reads and writes.
struct ConvertPlan {
    /// `-` is standard input and standard output.
    let files: [(input: String, output: String)]
    /// Directories to create before files are written to them.
    let directories: [String]

    /// A mistake in the command's arguments. The description is a sentence that names the files.
    struct Mistake: Error, CustomStringConvertible {
        let description: String
    }

    /// Plans one conversion. If `output` is a directory, the result goes into it under the input's name.
    ///
    /// - Parameter fileExtension: The extension of a result without a name of its own.
    init(input: String, output: String, fileExtension: String) throws(Mistake) {
        var output = output
        if input != "-", Files.isDirectory(input) {
            throw Mistake(description: "\(input) is a directory; give --to DIR to convert the animations in it.")
        }
        if Files.isDirectory(output) {
            guard input != "-" else {
                throw Mistake(description: "\(output) is a directory; name the file to write standard input's result to.")
            }
            output = Self.join(output, Self.renamed(Self.lastPart(input), fileExtension))
        }
        files = [(input, output)]
        directories = []
        try refuseOverwriting()
    }

    /// Plans the conversion of many files into a directory. An input that is a directory stands for all GIFs, APNGs and
    /// animated WebPs below it, by their names and first bytes; their results keep their path below it.
    init(inputs: [String], directory: String, fileExtension: String) throws(Mistake) {
        var files: [(input: String, output: String)] = []
        for input in inputs {
            if input == "-" {
                throw Mistake(
                    description: "Standard input has no name to write to \(directory) under; give IN and OUT instead.")
            }
            if Files.isDirectory(input) {
                let names = Self.animations(below: input)
                if names.isEmpty { throw Mistake(description: "\(input) holds no animation: no .gif, .apng, .png or .webp.") }
                files += names.map { (Self.join(input, $0), Self.join(directory, Self.renamed($0, fileExtension))) }
            } else {
                files.append((input, Self.join(directory, Self.renamed(Self.lastPart(input), fileExtension))))
            }
        }
        // File names are compared as bytes: strings are equal even if their characters are composed differently.
        var inputsByOutput: [[UInt8]: String] = [:]
        for file in files {
            if let other = inputsByOutput.updateValue(file.input, forKey: Array(file.output.utf8)) {
                throw Mistake(
                    description: "\(other) and \(file.input) would both be written to \(file.output); rename one of them or "
                        + "convert them into different directories.")
            }
        }
        self.files = files
        directories = Set(files.map { Array(Files.directory(of: $0.output).utf8) }).union([Array(directory.utf8)])
            .map { String(decoding: $0, as: UTF8.self) }.sorted()
        try refuseOverwriting()
    }

    /// Refuses an output that is an input of any conversion or another output, under any path.
    private func refuseOverwriting() throws(Mistake) {
        var inputs: [FileIdentity: String] = [:]
        for file in files where file.input != "-" {
            if let identity = FileIdentity(file.input) { inputs[identity] = file.input }
        }
        var outputs: [[UInt8]: String] = [:]
        for file in files where file.output != "-" {
            guard let identity = FileIdentity(file.output) else { continue }
            // Each name of a hard link gets a file of its own.
            let path = URL(fileURLWithPath: file.output).resolvingSymlinksInPath().path
            if let other = outputs.updateValue(file.output, forKey: Array(path.utf8)), files.count > 1 {
                throw Mistake(description: "\(other) and \(file.output) are one file; remove one of them.")
            }
            guard let input = inputs[identity] else { continue }
            let kind = input == file.input ? "the input itself" : "the input \(input)"
            throw Mistake(description: "\(file.output) is \(kind) and would be overwritten; give another output.")
        }
    }

    /// The paths of animations below a directory, relative to it and sorted.
    private static func animations(below directory: String) -> [String] {
        // The enumerator does not follow a link at its root.
        let path = URL(fileURLWithPath: directory).resolvingSymlinksInPath().path
        let all = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        return all.filter { name in
            guard let format = format(named: name), found.contains(format), Files.isRegular(join(directory, name)) else {
                return false
            }
            return format == .gif || isAnimation(join(directory, name))
        }.sorted()
    }

    /// Formats that are searched for below a directory. Videos are not among them, because they may be results of earlier
    /// conversions.
    private static let found: Set<SourceFormat> = [.gif, .apng, .webp]

    private static func format(named name: String) -> SourceFormat? {
        let name = name.lowercased()
        return SourceFormat.allCases.first { $0.fileExtensions.contains { name.hasSuffix(".\($0)") } }
    }

    /// Whether the first bytes of a file may be those of an animation. Most files with these extensions are still pictures.
    private static func isAnimation(_ path: String) -> Bool {
        guard let file = FileHandle(forReadingAtPath: path) else { return false }
        defer { try? file.close() }
        let start = (try? file.read(upToCount: headLength)) ?? Data()
        return start.withUnsafeBytes { SourceFormat(of: $0)?.isAnimation($0) ?? false }
    }

    /// The number of bytes that contain a PNG's `acTL` chunk, unless an unusually long profile precedes it.
    private static let headLength = 1 << 20

    /// Returns the path of a source with the extension of the result.
    private static func renamed(_ path: String, _ fileExtension: String) -> String {
        guard let format = format(named: path), let dot = path.lastIndex(of: ".") else { return path + "." + fileExtension }
        // GIFs come first: others keep their extension, so that a.gif and a.webp do not become one file.
        return (format == .gif ? String(path[..<dot]) : path) + "." + fileExtension
    }

    private static func join(_ directory: String, _ name: String) -> String {
        directory.hasSuffix("/") ? directory + name : directory + "/" + name
    }

    private static func lastPart(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }
}

/// The identity of an existing file, after symbolic links are resolved.
private struct FileIdentity: Hashable {
    let device: dev_t
    let number: ino_t

    /// Nil if the path names nothing.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        (device, number) = (status.st_dev, status.st_ino)
    }
}
