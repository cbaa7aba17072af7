internal import Foundation
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

    /// Plans one conversion. Where `output` is a directory, the result goes into it under the input's name.
    ///
    /// - Parameter fileExtension: The extension of a result without a name of its own.
    init(input: String, output: String, fileExtension: String) throws(Mistake) {
        var output = output
        if input != "-", Files.isDirectory(input) {
            throw Mistake(description: "\(input) is a directory; give --to DIR to convert the GIFs in it.")
        }
        if Files.isDirectory(output) {
            guard input != "-" else {
                throw Mistake(description: "\(output) is a directory; name the file to write standard input's result to.")
            }
            output = Self.join(output, Self.renamed(Self.lastPart(input), fileExtension))
        }
        files = [(input, output)]
        directories = []
        try refuseOverwritingInputs()
    }

    /// Plans the conversion of many files into a directory. An input that is a directory stands for all files below it whose
    /// name ends in `.gif`; their results keep their path below it.
    init(inputs: [String], directory: String, fileExtension: String) throws(Mistake) {
        var files: [(input: String, output: String)] = []
        for input in inputs {
            if input == "-" {
                throw Mistake(
                    description: "Standard input has no name to write to \(directory) under; give IN and OUT instead.")
            }
            if Files.isDirectory(input) {
                let names = Self.gifs(below: input)
                if names.isEmpty { throw Mistake(description: "\(input) holds no file whose name ends in .gif.") }
                files += names.map { (Self.join(input, $0), Self.join(directory, Self.renamed($0, fileExtension))) }
            } else {
                files.append((input, Self.join(directory, Self.renamed(Self.lastPart(input), fileExtension))))
            }
        }
        var inputsByOutput: [String: String] = [:]
        for file in files {
            if let other = inputsByOutput.updateValue(file.input, forKey: file.output) {
                throw Mistake(
                    description: "\(other) and \(file.input) would both be written to \(file.output); rename one of them or "
                        + "convert them into different directories.")
            }
        }
        self.files = files
        directories = Set(files.map { Files.directory(of: $0.output) }).union([directory]).sorted()
        try refuseOverwritingInputs()
    }

    private func refuseOverwritingInputs() throws(Mistake) {
        for file in files where file.input != "-" && file.output != "-" && Files.areSame(file.input, file.output) {
            throw Mistake(description: "\(file.output) is the input itself and would be overwritten; give another output.")
        }
    }

    /// The paths of GIF files below a directory, relative to it and sorted.
    private static func gifs(below directory: String) -> [String] {
        let all = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
        return all.filter { $0.lowercased().hasSuffix(".gif") && !Files.isDirectory(join(directory, $0)) }.sorted()
    }

    /// The path with another extension in place of `.gif`.
    private static func renamed(_ path: String, _ fileExtension: String) -> String {
        (path.lowercased().hasSuffix(".gif") ? String(path.dropLast(4)) : path) + "." + fileExtension
    }

    private static func join(_ directory: String, _ name: String) -> String {
        directory.hasSuffix("/") ? directory + name : directory + "/" + name
    }

    private static func lastPart(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }
}
