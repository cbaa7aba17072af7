import Foundation
import SystemIO
import Testing

@Suite("Whole files are read and replaced by path") struct FilesTests {
    private final class Folder {
        let path: String

        init() throws {
            let url = FileManager.default.temporaryDirectory.appending(path: "gifreel-files-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
            path = url.path
        }

        deinit {
            try? FileManager.default.removeItem(atPath: path)
        }

        var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
    }

    @Test func aFileIsReplacedAsAWhole() throws {
        let folder = try Folder()
        let path = folder.path + "/a"
        try Files.write("one", to: path)
        let reader = SharedDescriptor(OwnedDescriptor(taking: open(path, O_RDONLY)))
        try Files.write("twenty-two", to: path)
        #expect(try Files.read(path) == Array("twenty-two".utf8))
        #expect(try reader.readAll() == Array("one".utf8))
        // No temporary file is left.
        #expect(folder.names == ["a"])
        try Files.write("", to: path)
        #expect(try Files.read(path) == [])
    }

    @Test func aFailedWriteLeavesNothing() throws {
        let folder = try Folder()
        #expect(mkdir(folder.path + "/directory", 0o755) == 0)
        let error = #expect(throws: FileError.self) { try Files.write("x", to: folder.path + "/directory") }
        #expect(error?.description.contains("/directory cannot be written: ") == true)
        #expect(folder.names == ["directory"])
        #expect(throws: FileError.self) { try Files.write("x", to: folder.path + "/none/a") }
        let missing = #expect(throws: FileError.self) { try Files.read(folder.path + "/none") }
        #expect(missing?.description == "\(folder.path)/none cannot be read: No such file or directory.")
    }

    @Test func directoriesAreCreatedWithThoseAboveThem() throws {
        let folder = try Folder()
        let path = folder.path + "/a/b/c"
        try Files.createDirectory(path)
        try Files.createDirectory(path)
        #expect(Files.isDirectory(path))
        #expect(Files.exists(path) && !Files.exists(path + "/d"))
        try Files.write("x", to: path + "/file")
        #expect(!Files.isDirectory(path + "/file"))
        let error = #expect(throws: FileError.self) { try Files.createDirectory(path + "/file") }
        #expect(error?.code == ENOTDIR)
        #expect(throws: FileError.self) { try Files.createDirectory(path + "/file/below") }
        #expect(Files.areSame(path, folder.path + "/a/../a/b/c"))
        #expect(!Files.areSame(path, folder.path))
        #expect(!Files.areSame(path + "/none", path + "/none"))
    }

    @Test(arguments: [("a/b/c", "a/b"), ("c", "."), ("/c", "/"), ("/", "/"), ("a/b/", "a"), ("/a/b", "/a"), ("", ".")])
    func theDirectoryOfAPath(path: String, directory: String) {
        #expect(Files.directory(of: path) == directory)
    }

    @Test func hardLinksAreTheSameFile() throws {
        let folder = try Folder()
        try Files.write("x", to: folder.path + "/a")
        try Files.write("x", to: folder.path + "/b")
        #expect(link(folder.path + "/a", folder.path + "/c") == 0)
        #expect(Files.areSame(folder.path + "/a", folder.path + "/c"))
        #expect(!Files.areSame(folder.path + "/a", folder.path + "/b"))
    }

    @Test func anAppendedFileGrowsAndTellsItsLastByte() throws {
        let folder = try Folder()
        let path = folder.path + "/log"
        do {
            let file = try AppendedFile(path: path)
            #expect(file.lastByte == nil)
            try file.append(Array("one\n".utf8))
            #expect(file.lastByte == UInt8(ascii: "\n"))
        }
        let file = try AppendedFile(path: path)
        try file.append(Array("two".utf8))
        #expect(file.lastByte == UInt8(ascii: "o"))
        #expect(try Files.read(path) == Array("one\ntwo".utf8))
        #expect(throws: FileError.self) { _ = try AppendedFile(path: folder.path) }
    }
}
